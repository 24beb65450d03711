// What the pointer, or a finger, reads from a drawing.
"use strict";
(() => {
  const shown = document.createElement("div");
  shown.className = "tip";
  shown.hidden = true;
  document.body.append(shown);
  const show = (event) => {
    const tip = event.target.closest ? event.target.closest("[data-tip]") : null;
    shown.hidden = !tip;
    if (!tip) return;
    shown.textContent = tip.dataset.tip;
    const { width, height } = shown.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 6);
    shown.style.left = `${Math.max(6, left)}px`;
    shown.style.top = `${event.clientY - height - 14 > 6 ? event.clientY - height - 14 : event.clientY + 20}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => { shown.hidden = true; }, { passive: true });
})();
