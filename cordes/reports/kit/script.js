// What every page can do: choose its theme, and copy commands. Nothing here asks the network.
"use strict";
(() => {
  const root = document.documentElement;
  const remember = (value) => { try { localStorage.setItem("cordes-theme", value); } catch { /* a file may have no storage */ } };
  const recall = () => { try { return localStorage.getItem("cordes-theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const announce = () => document.dispatchEvent(new CustomEvent("themechange", { detail: { dark: isDark() } }));
  const kept = recall();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  const toggle = document.getElementById("theme");
  if (toggle) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      announce();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try { await navigator.clipboard.writeText(code.textContent); } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        document.execCommand("copy");
      }
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }
})();

// Maps and charts: the pointer, a finger, or the arrow keys read values.
(() => {
  for (const slides of document.querySelectorAll(".slides")) {
    const label = slides.querySelector(".slider"), input = label.querySelector("input"), output = label.querySelector("output");
    const parts = slides.querySelectorAll(":scope > .slide"), names = JSON.parse(input.dataset.labels);
    const show = () => {
      parts.forEach((part, k) => { part.hidden = k !== Number(input.value); });
      output.textContent = names[Number(input.value)];
    };
    label.hidden = false;
    input.addEventListener("input", show);
    show();
  }
})();
(() => {
  const element = document.getElementById("data");
  if (!element) return;
  const data = JSON.parse(element.textContent);
  const raised = (text) => text.replace(/[-0-9]/g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));
  // A bound that is shown must still be one: `up` takes the next number with so many digits.
  const shown = (value, digits = 4, up = false) => {
    if (value === null || !Number.isFinite(value)) return "—";
    if (value === 0) return "0";
    if (up) {
      const near = Number(value.toPrecision(digits));
      if (near < value) value = near + 10 ** (Math.floor(Math.log10(Math.abs(near))) - digits + 1);
    }
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e6) return String(Number(value.toPrecision(digits))).replace("-", "−");
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return `${String(Number(mantissa)).replace("-", "−")}·10${raised(String(Number(exponent)))}`;
  };
  const decoded = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new DataView(bytes.buffer);
  };

  for (const figure of document.querySelectorAll("figure[data-map]")) {
    const map = (data.maps || {})[figure.dataset.map];
    if (!map) continue;
    const plot = figure.querySelector(".plot"), reading = figure.querySelector(".reading"), dot = figure.querySelector(".dot");
    const [n, m] = map.shape;
    let values = null, place = [n >> 1, m >> 1];
    const rest = reading.innerHTML;
    const show = (i, j) => {
      values = values || decoded(map.values);
      place = [Math.min(Math.max(i, 0), n - 1), Math.min(Math.max(j, 0), m - 1)];
      const value = values.getFloat32(4 * (place[0] * m + place[1]), true);
      const at = place.map((k, axis) => map.lower[axis] + ((k + 0.5) / map.shape[axis]) * (map.upper[axis] - map.lower[axis]));
      const found = Number.isNaN(value) ? "outside" : map.categories ? map.categories[Math.round(value)] : shown(value, 4, map.up);
      reading.textContent = `${map.names[0]} = ${shown(at[0], 3)}, ${map.names[1]} = ${shown(at[1], 3)}:  ${found}`;
      dot.style.left = `${(100 * (place[0] + 0.5)) / n}%`;
      dot.style.top = `${100 * (1 - (place[1] + 0.5) / m)}%`;
      dot.style.display = "block";
    };
    const hide = () => { dot.style.display = "none"; reading.innerHTML = rest; };
    const point = (event) => {
      const box = plot.getBoundingClientRect();
      show(Math.floor(((event.clientX - box.left) / box.width) * n), Math.floor((1 - (event.clientY - box.top) / box.height) * m));
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      show(place[0] + step[0], place[1] + step[1]);
    });
  }

  const svg = (picture, name, attributes) => {
    const made = document.createElementNS(picture.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const chart = (data.charts || {})[figure.dataset.chart];
    if (!chart) continue;
    const picture = figure.querySelector("svg"), marker = figure.querySelector(".marker"), reading = figure.querySelector(".reading");
    const rest = reading.innerHTML;
    let place = null;
    const show = (k, i) => {
      place = [k, i];
      const series = chart.series[k], at = series.at[i];
      const name = chart.series.length > 1 ? `${series.name}: ` : "";
      reading.textContent = `${name}${chart.x} ${shown(series.x[i])}:  ${shown(series.y[i], 4, chart.up)}`;
      marker.replaceChildren(
        svg(picture, "line", { x1: at[0], x2: at[0], y1: 12, y2: picture.viewBox.baseVal.height - 44, class: "rule strong" }),
        svg(picture, "circle", { cx: at[0], cy: at[1], r: 4.5, class: `series-${(k % 6) + 1}` }),
      );
    };
    const hide = () => { place = null; marker.replaceChildren(); reading.innerHTML = rest; };
    const point = (event) => {
      const box = picture.getBoundingClientRect(), view = picture.viewBox.baseVal;
      const x = ((event.clientX - box.left) / box.width) * view.width, y = ((event.clientY - box.top) / box.height) * view.height;
      let best = null;
      chart.series.forEach((series, k) => series.at.forEach((at, i) => {
        if (!at) return;
        const distance = Math.abs(at[0] - x) + 0.2 * Math.abs(at[1] - y);
        if (!best || distance < best.distance) best = { distance, k, i, at };
      }));
      if (best) show(best.k, best.i);
    };
    // Left and right go along a line, over its gaps; up and down to the next line.
    const along = (k, i, step) => {
      const at = chart.series[k].at;
      for (; i >= 0 && i < at.length; i += step) if (at[i]) { show(k, i); return true; }
      return false;
    };
    const across = (k, i) => {
      const near = Math.min(Math.max(i, 0), chart.series[k].at.length - 1);
      return along(k, near, 1) || along(k, near, -1);
    };
    picture.addEventListener("pointermove", point);
    picture.addEventListener("pointerdown", point);
    picture.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => {
      const count = chart.series.length, [k, i] = place || [0, -1], last = chart.series[k].at.length - 1;
      const moves = {
        ArrowRight: () => along(k, i + 1, 1),
        ArrowLeft: () => along(k, place ? i - 1 : last, -1),
        Home: () => along(k, 0, 1),
        End: () => along(k, last, -1),
        ArrowUp: () => across((k + count - 1) % count, i),
        ArrowDown: () => across((k + 1) % count, i),
        Escape: hide,
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
  }
})();
