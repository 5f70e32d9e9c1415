// Tens of thousands of points on a canvas that can be moved and magnified. points: {x, y} arrays in the plane, y upward.
// paint(i) gives each point a colour, size(i) a size; tell(i) says what a point is.
function cloud({ height, words, axes = null, tell, zooms = true }) {
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": words });
  const box = h("div", { class: axes ? "cloud axes" : "cloud" }, canvas);
  let points = null, layers = [], view = null, home = null, width = 0, moving = 0, over = -1;
  const pointers = new Map();
  const inner = () => (axes ? { left: 52, right: 10, top: 12, bottom: 42 } : { left: 0, right: 0, top: 0, bottom: 0 });

  // The part of the plane that is shown: its middle and how many pixels one unit is, alike both ways on a map.
  function fit([x0, x1], [y0, y1]) {
    const m = inner(), w = width - m.left - m.right, hgt = height - m.top - m.bottom;
    const sx = w / ((x1 - x0) * 1.08 || 1), sy = hgt / ((y1 - y0) * 1.08 || 1);
    return { x: (x0 + x1) / 2, y: (y0 + y1) / 2, sx: axes ? sx : Math.min(sx, sy), sy: axes ? sy : Math.min(sx, sy) };
  }
  const place = (i) => {
    const m = inner();
    return [m.left + (width - m.left - m.right) / 2 + (points.x[i] - view.x) * view.sx, m.top + (height - m.top - m.bottom) / 2 - (points.y[i] - view.y) * view.sy];
  };

  function show(next, groups, { keep = false, whole: all = false } = {}) {
    const old = points, from = view;
    points = next;
    layers = groups;
    if (!width) return;
    home = fit(range(points.x, all ? 0 : 0.004), range(points.y, all ? 0 : 0.004));
    if (keep && from) { draw(); return; }
    view = home;
    if (old && from && old.x.length === next.x.length && !matchMedia("(prefers-reduced-motion: reduce)").matches) glide(old, from, next, home);
    else draw();
  }

  function glide(old, from, next, to) {
    const begin = performance.now(), run = ++moving;
    const mix = { x: new Float32Array(next.x.length), y: new Float32Array(next.x.length) };
    const step = (now) => {
      if (run !== moving) return;
      const t = Math.min(1, (now - begin) / 450), e = t * t * (3 - 2 * t);
      // Each picture in the other's scale, so that a point moves from where it was seen to where it will be.
      for (let i = 0; i < mix.x.length; i++) {
        mix.x[i] = to.x + ((1 - e) * (old.x[i] - from.x) * from.sx) / to.sx + e * (next.x[i] - to.x);
        mix.y[i] = to.y + ((1 - e) * (old.y[i] - from.y) * from.sy) / to.sy + e * (next.y[i] - to.y);
      }
      points = t < 1 ? mix : next;
      draw();
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  function draw() {
    if (!width || !points) return;
    const ratio = devicePixelRatio || 1, m = inner();
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(m.left, m.top, width - m.left - m.right, height - m.top - m.bottom);
    pen.clip();
    const cx = m.left + (width - m.left - m.right) / 2, cy = m.top + (height - m.top - m.bottom) / 2;
    for (const { at, paint, size, fade } of layers) {
      pen.fillStyle = paint;
      pen.globalAlpha = fade;
      const r = size / 2;
      for (const i of at) {
        const x = cx + (points.x[i] - view.x) * view.sx, y = cy - (points.y[i] - view.y) * view.sy;
        if (x < -4 || y < -4 || x > width + 4 || y > height + 4) continue;
        if (size < 5) pen.fillRect(x - r, y - r, size, size);
        else { pen.beginPath(); pen.arc(x, y, r, 0, 7); pen.fill(); }
      }
    }
    pen.globalAlpha = 1;
    if (over >= 0) {
      const [x, y] = place(over);
      pen.strokeStyle = color("--ink");
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(x, y, 5.5, 0, 7);
      pen.stroke();
    }
    pen.restore();
    if (axes) drawAxes();
  }

  // Axes are drawn by SVG beneath the canvas, so that their words stay words.
  function drawAxes() {
    const m = inner(), cx = m.left + (width - m.left - m.right) / 2, cy = m.top + (height - m.top - m.bottom) / 2;
    const domain = { x: [view.x - (cx - m.left) / view.sx, view.x + (width - m.right - cx) / view.sx], y: [view.y - (height - m.bottom - cy) / view.sy, view.y + (cy - m.top) / view.sy] };
    box.querySelector("svg")?.remove();
    const host = h("div");
    const f = frame(host, width, { height, ...m, x: { domain: domain.x, label: axes.x, format: axes.formatX }, y: { domain: domain.y, label: axes.y }, label: words });
    if (axes.lines) for (const line of axes.lines()) f.svg.append(s("path", { class: "line", vars: { "--stroke": line.paint }, d: path(line.points.map(([x, y]) => [f.x(x), f.y(y)])) }));
    f.svg.setAttribute("aria-hidden", "true");
    box.prepend(f.svg);
  }

  function near(event) {
    const spot = canvas.getBoundingClientRect(), px = event.clientX - spot.left, py = event.clientY - spot.top;
    let best = -1, least = 144;
    for (const { at } of layers) for (const i of at) {
      const [x, y] = place(i), gap = (x - px) ** 2 + (y - py) ** 2;
      if (gap < least) { least = gap; best = i; }
    }
    return best;
  }

  function zoom(factor, px = width / 2, py = height / 2) {
    const m = inner(), cx = m.left + (width - m.left - m.right) / 2, cy = m.top + (height - m.top - m.bottom) / 2;
    const x = view.x + (px - cx) / view.sx, y = view.y - (py - cy) / view.sy;
    view = { sx: view.sx * factor, sy: view.sy * factor, x: x - (px - cx) / (view.sx * factor), y: y + (py - cy) / (view.sy * factor) };
    draw();
  }

  function move(dx, dy) { view = { ...view, x: view.x - dx / view.sx, y: view.y + dy / view.sy }; draw(); }
  const back = () => { view = home; draw(); };
  const everything = () => { view = fit(range(points.x, 0), range(points.y, 0)); draw(); };

  canvas.addEventListener("pointerdown", (event) => { if (!zooms) return; pointers.set(event.pointerId, event); if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (before && pointers.size === 1 && event.pointerType === "mouse") move(event.clientX - before.clientX, event.clientY - before.clientY);
    if (before && pointers.size === 2) {
      const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId), spot = canvas.getBoundingClientRect();
      const gap = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
      zoom(gap(event) / (gap(before) || 1), (event.clientX + other.clientX) / 2 - spot.left, (event.clientY + other.clientY) / 2 - spot.top);
    }
    if (before) { pointers.set(event.pointerId, event); if (pointers.size > 1 || event.buttons) return; }
    const i = points ? near(event) : -1;
    if (i !== over) { over = i; draw(); }
    if (i < 0) hideTip();
    else showTip(event.clientX, event.clientY, ...tell(i));
  });
  const release = (event) => pointers.delete(event.pointerId);
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, release);
  canvas.addEventListener("pointerleave", (event) => { release(event); over = -1; hideTip(); if (points) draw(); });
  if (zooms) {
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const spot = canvas.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 400), event.clientX - spot.left, event.clientY - spot.top);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const act = { "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: back, ArrowLeft: () => move(40, 0), ArrowRight: () => move(-40, 0), ArrowUp: () => move(0, 40), ArrowDown: () => move(0, -40) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    const button = (text, words2, act) => h("button", { type: "button", "aria-label": words2, title: words2, onclick: act }, text);
    box.append(h("div", { class: "zoom" }, button("+", "Magnify", () => zoom(1.5)), button("\u2212", "Make smaller", () => zoom(1 / 1.5)), button("Fit", "Back to most of the points", back), button("All", "Show every point", everything)));
  }

  // The same picture as an SVG: one path of round dots for each colour.
  function svgText() {
    const number = (v) => v.toFixed(1);
    const dots = layers.map(({ at, paint, size, fade }) => {
      let d = "";
      for (const i of at) { const [x, y] = place(i); if (x >= 0 && y >= 0 && x <= width && y <= height) d += `M${number(x)} ${number(y)}h0`; }
      return `<path d="${d}" fill="none" stroke="${paint}" stroke-width="${size}" stroke-opacity="${fade}" stroke-linecap="round"/>`;
    }).join("");
    const under = axes ? standalone(box.querySelector("svg")).replace(/^<svg[^>]*>|<\/svg>$/g, "") : `<rect width="${width}" height="${height}" fill="${color("--page")}"/>`;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${under}${dots}</svg>`;
  }

  const resize = (now) => { const first = !width; width = now; if (points) { const old = points; points = null; if (first) view = null; show(old, layers, {}); } };
  return { box, show, resize, draw, svgText, outside: () => countOutside() };

  function countOutside() {
    if (!points || !view) return 0;
    let count = 0;
    for (let i = 0; i < points.x.length; i++) { const [x, y] = place(i); if (x < 0 || y < 0 || x > width || y > height) count++; }
    return count;
  }
}

// The span of most values: the outermost share on either side is left out.
function range(values, outer) {
  if (!values.length) return [0, 1];
  const sorted = Float32Array.from(values).sort(), cut = Math.floor(outer * sorted.length);
  const low = sorted[cut], high = sorted[sorted.length - 1 - cut];
  return low === high ? [low - 1, high + 1] : [low, high];
}
