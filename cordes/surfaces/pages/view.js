// A surface with a checkerboard that can be turned, unrolled and read: WebGL 2, written by hand. Where there is none the still pictures stay.
"use strict";
(() => {
  const place = document.getElementById("surface-view");
  const view = place && JSON.parse(document.getElementById("data").textContent).view;
  const canvas = place && place.querySelector("canvas");
  const gl = canvas && canvas.getContext("webgl2", { alpha: true, antialias: true });
  if (!gl) return;

  // Data: whole numbers in base64, little-endian as every machine with WebGL is.
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const positions = new Int16Array(bytes(view.positions));
  const normals = new Int8Array(bytes(view.normals));
  const relief = new Uint8Array(bytes(view.relief));
  const faces = view.wide ? new Uint32Array(bytes(view.faces)) : new Uint16Array(bytes(view.faces));
  const maps = view.maps.map((map) => ({ ...map, uv: new Uint16Array(bytes(map.uv)), ratio: new Int16Array(bytes(map.ratio)) }));
  const count = positions.length / 3;

  const vertexSource = `#version 300 es
    in vec3 position; in vec3 normal; in vec2 uv; in float ratio; in float relief;
    uniform mat3 turn; uniform vec2 size; uniform float flatness, zoom, squares; uniform vec2 shape;
    out vec3 facing; out vec2 board; out float stretch; out float shade;
    void main() {
      vec2 place = uv * size;
      vec3 sheet = vec3((place - size / 2.0) * (1.7 / max(size.x, size.y)), 0.0);
      vec3 at = turn * mix(position, sheet, flatness);
      facing = turn * normal; board = place / max(size.x, size.y) * squares; stretch = ratio / 1000.0; shade = relief;
      float away = 1.0 - at.z / 6.0;
      gl_Position = vec4(at.xy * zoom / shape, -at.z * 0.3 * away, away);
    }`;
  // The checkerboard is averaged over each pixel, so that it does not flicker where the squares are small.
  const fragmentSource = `#version 300 es
    precision highp float;
    in vec3 facing; in vec2 board; in float stretch; in float shade;
    uniform vec3 bright, dark; uniform float flatness, limit; uniform bool areas;
    out vec4 colour;
    vec3 diverging(float t) {
      vec3 low = mix(vec3(0.02, 0.19, 0.38), vec3(0.26, 0.58, 0.76), smoothstep(-1.0, -0.5, t));
      vec3 high = mix(vec3(0.84, 0.38, 0.30), vec3(0.40, 0.0, 0.12), smoothstep(0.5, 1.0, t));
      vec3 middle = vec3(0.95);
      return t < 0.0 ? mix(middle, low, min(-2.0 * t, 1.0)) : mix(middle, high, min(2.0 * t, 1.0));
    }
    void main() {
      vec2 width = max(fwidth(board), 1e-4);
      vec2 covered = 2.0 * (abs(fract((board - 0.5 * width) * 0.5) - 0.5) - abs(fract((board + 0.5 * width) * 0.5) - 0.5)) / width;
      vec3 paint = areas ? diverging(clamp(stretch / limit, -1.0, 1.0)) : mix(bright, dark, 0.5 - 0.5 * covered.x * covered.y);
      float side = gl_FrontFacing ? 1.0 : -1.0;
      float lit = 0.45 + 0.55 * clamp(side * dot(normalize(facing), normalize(vec3(-0.45, 0.55, 0.7))), 0.0, 1.0);
      float light = mix(lit, areas ? 1.0 : shade, flatness) * (gl_FrontFacing ? 1.0 : 0.55);
      colour = vec4(paint * light, 1.0);
    }`;

  const compile = (kind, source) => {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    return shader;
  };
  const program = gl.createProgram();
  gl.attachShader(program, compile(gl.VERTEX_SHADER, vertexSource));
  gl.attachShader(program, compile(gl.FRAGMENT_SHADER, fragmentSource));
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  gl.useProgram(program);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const where = Object.fromEntries(["turn", "size", "flatness", "zoom", "squares", "shape", "bright", "dark", "limit", "areas"].map((name) => [name, uniform(name)]));

  const buffer = (target, values) => {
    const made = gl.createBuffer();
    gl.bindBuffer(target, made);
    gl.bufferData(target, values, gl.STATIC_DRAW);
  };
  const attribute = (name, values, width, kind, normalised) => {
    buffer(gl.ARRAY_BUFFER, values);
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, width, kind, normalised, 0, 0);
  };
  for (const map of maps) {
    map.arrays = gl.createVertexArray();
    gl.bindVertexArray(map.arrays);
    attribute("position", positions, 3, gl.SHORT, true);
    attribute("normal", normals, 3, gl.BYTE, true);
    attribute("relief", relief, 1, gl.UNSIGNED_BYTE, true);
    attribute("uv", map.uv, 2, gl.UNSIGNED_SHORT, true);
    attribute("ratio", map.ratio, 1, gl.SHORT, false);
    buffer(gl.ELEMENT_ARRAY_BUFFER, faces);
  }
  gl.enable(gl.DEPTH_TEST);
  gl.uniform2fv(where.size, view.size);
  gl.uniform1f(where.squares, view.squares);
  gl.uniform1f(where.limit, view.limit);
  gl.uniform3fv(where.bright, view.bright);
  gl.uniform3fv(where.dark, view.dark);

  // What is seen: a rotation (rows of a matrix), a zoom, how flat, and which maps. The names of the state are those of the buttons.
  const state = { turn: [1, 0, 0, 0, 1, 0, 0, 0, 1], zoom: 1, flatness: 0, shown: [], areas: false };
  const times = (a, b) => a.map((_, k) => { const i = 3 * Math.floor(k / 3), j = k % 3; return a[i] * b[j] + a[i + 1] * b[3 + j] + a[i + 2] * b[6 + j]; });
  const rotate = (across, down) => {
    const [c, s, d, t] = [Math.cos(across), Math.sin(across), Math.cos(down), Math.sin(down)];
    state.turn = orthonormal(times([1, 0, 0, 0, d, -t, 0, t, d], times([c, 0, s, 0, 1, 0, -s, 0, c], state.turn)));
    redraw();
  };
  // Thousands of small rotations would otherwise shear the picture by rounding.
  const orthonormal = (m) => {
    const unit = (v) => { const length = Math.hypot(...v); return v.map((x) => x / length); };
    const a = unit(m.slice(0, 3)), along = a[0] * m[3] + a[1] * m[4] + a[2] * m[5];
    const b = unit([m[3] - along * a[0], m[4] - along * a[1], m[5] - along * a[2]]);
    return [...a, ...b, a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  };
  const enlarge = (factor) => { state.zoom = Math.min(12, Math.max(0.4, state.zoom * factor)); redraw(); };
  const reset = () => { state.turn = [1, 0, 0, 0, 1, 0, 0, 0, 1]; state.zoom = 1; redraw(); };

  // Each shown map has its own part of the canvas, side by side.
  const panes = () => {
    const wide = canvas.width / state.shown.length;
    return state.shown.map((map, k) => ({ map, left: Math.round(k * wide), width: Math.round(wide), shape: fit(wide, canvas.height) }));
  };
  const fit = (wide, high) => { const short = Math.min(wide, high / view.tall) * 0.94; return [wide / short, high / short]; };
  const draw = () => {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix3fv(where.turn, true, state.turn);
    gl.uniform1f(where.flatness, state.flatness);
    gl.uniform1f(where.zoom, state.zoom);
    gl.uniform1i(where.areas, state.areas ? 1 : 0);
    gl.enable(gl.SCISSOR_TEST);
    for (const pane of panes()) {
      gl.viewport(pane.left, 0, pane.width, canvas.height);
      gl.scissor(pane.left, 0, pane.width, canvas.height);
      gl.uniform2fv(where.shape, pane.shape);
      gl.bindVertexArray(pane.map.arrays);
      gl.drawElements(gl.TRIANGLES, faces.length, view.wide ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, 0);
    }
    gl.disable(gl.SCISSOR_TEST);
  };
  let asked = false;
  const redraw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
  const resize = () => {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    canvas.style.aspectRatio = `${state.shown.length} / ${view.tall}`;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    draw();
  };

  // The vertex nearest to the pointer; of several within reach the one in front.
  const reading = place.querySelector("output");
  const silence = reading.textContent;
  const read = (event) => {
    const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const pane = panes().find((each) => x >= each.left && x < each.left + each.width);
    const found = pane && nearest(pane, x, y, 9 * scale);
    if (found === undefined || found < 0) { reading.textContent = silence; return; }
    const map = pane.map, factor = Math.exp(map.ratio[found] / 1000);
    const [u, v] = [0, 1].map((k) => (map.uv[2 * found + k] / 65535 * view.size[k]).toFixed(3));
    const much = factor >= 1 ? `${factor.toPrecision(3)} times larger` : `${(1 / factor).toPrecision(3)} times smaller`;
    reading.textContent = `${map.label}: at (${u}, ${v}) the flat map makes areas ${much} than its average.`;
  };
  const nearest = (pane, x, y, reach) => {
    const m = state.turn, f = state.flatness, map = pane.map, unit = 1.7 / Math.max(...view.size);
    let best = -1, front = -Infinity;
    for (let k = 0; k < count; k++) {
      const flat = [(map.uv[2 * k] / 65535 - 0.5) * view.size[0] * unit, (map.uv[2 * k + 1] / 65535 - 0.5) * view.size[1] * unit, 0];
      const p = flat.map((value, axis) => value * f + positions[3 * k + axis] / 32767 * (1 - f));
      const z = m[6] * p[0] + m[7] * p[1] + m[8] * p[2], away = 1 - z / 6;
      const right = (m[0] * p[0] + m[1] * p[1] + m[2] * p[2]) * state.zoom / pane.shape[0] / away;
      const up = (m[3] * p[0] + m[4] * p[1] + m[5] * p[2]) * state.zoom / pane.shape[1] / away;
      const dx = pane.left + (right + 1) / 2 * pane.width - x, dy = (1 - up) / 2 * canvas.height - y;
      const nearness = z - 0.02 * Math.hypot(dx, dy) / reach;
      if (dx * dx + dy * dy < reach * reach && nearness > front) { front = nearness; best = k; }
    }
    return best;
  };

  // One finger or the mouse turns, two fingers or the wheel zoom. The wheel zooms when the picture is selected, since it scrolls the page otherwise.
  const fingers = new Map();
  const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) { read(event); return; }
    const [dx, dy] = [event.clientX - last.x, event.clientY - last.y], before = fingers.size === 2 ? spread() : 0;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 1) rotate(dx * 0.008, dy * 0.008);
    else if (fingers.size === 2 && before > 0) enlarge(spread() / before);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => { reading.textContent = silence; });
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    enlarge(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.003));
  }, { passive: false });
  const step = Math.PI / 18;
  const keys = {
    ArrowLeft: () => rotate(-step, 0), ArrowRight: () => rotate(step, 0), ArrowUp: () => rotate(0, -step), ArrowDown: () => rotate(0, step),
    "+": () => enlarge(1.2), "=": () => enlarge(1.2), "-": () => enlarge(1 / 1.2), Home: reset, 0: reset,
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  // Buttons.
  const best = maps[maps.length - 1], labels = place.querySelector(".labels");
  const show = (choice) => {
    state.shown = choice === "both" ? [maps[0], best] : [maps[Number(choice)]];
    labels.replaceChildren(...state.shown.map((map) => { const label = document.createElement("span"); label.textContent = map.label; return label; }));
    press("map", choice);
    resize();
  };
  const paint = (choice) => { state.areas = choice === "areas"; press("paint", choice); place.querySelector(".ratios").hidden = !state.areas; redraw(); };
  const press = (group, choice) => {
    for (const button of place.querySelectorAll(`button[data-${group}]`)) button.setAttribute("aria-pressed", String(button.dataset[group] === choice));
  };
  for (const button of place.querySelectorAll("button[data-map]")) button.addEventListener("click", () => show(button.dataset.map));
  for (const button of place.querySelectorAll("button[data-paint]")) button.addEventListener("click", () => paint(button.dataset.paint));
  place.querySelector("button[data-reset]").addEventListener("click", reset);
  place.querySelector("input").addEventListener("input", (event) => { state.flatness = Number(event.target.value); redraw(); });

  const stills = document.getElementById("surface-stills");
  const live = (on) => { place.hidden = !on; if (stills) stills.classList.toggle("spare", on); };
  canvas.addEventListener("webglcontextlost", () => live(false));
  live(true);
  paint("checks");
  show(place.clientWidth >= 640 ? "both" : String(maps.length - 1));
  new ResizeObserver(resize).observe(canvas);
})();
