// A panel with a heading, a drawing that follows its width, and what can be taken away from it.
function panel({ title, text, name, draw, data, level = "h3", wide = false, svg = null }) {
  const drawing = h("div", { class: "drawing" });
  const aboutText = h("p", { class: "about" });
  const box = h("figure", { class: wide ? "panel wide" : "panel", "aria-label": title },
    h("header", {}, h(level, {}, title)), aboutText, drawing, tools({ name, drawing, data, title, svg }));
  let width = 0;
  const redraw = () => {
    if (!width) return;
    const words = typeof text === "function" ? text() : text;
    aboutText.textContent = words || "";
    aboutText.hidden = !words;
    draw(drawing, width);
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now && now !== width) { width = now; redraw(); }
  }).observe(drawing);
  return Object.assign(box, { redraw, drawing });
}

function tools({ name, drawing, data, title, svg }) {
  const found = () => svg ? svg() : drawing.querySelector("svg.chart");
  const rest = h("div");
  const table = data && h("details", {
    ontoggle: (event) => { if (event.target.open) rest.replaceChildren(plainTable(data(), title)); else rest.replaceChildren(); },
  }, h("summary", {}, "As a table"), rest);
  return h("div", { class: "tools" }, table,
    data && h("button", { class: "quiet", type: "button", "aria-label": `${title}: download CSV`, onclick: () => saveCsv(name(), data()) }, "CSV"),
    h("button", { class: "quiet", type: "button", "aria-label": `${title}: download SVG`, onclick: () => saveSvg(name(), found()) }, "SVG"));
}

const FEW = 300;

function plainTable({ columns, rows }, title) {
  const lines = rows.slice(0, FEW);
  const numeric = columns.map((_, i) => rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === "number"));
  const more = rows.length > FEW ? `The first ${FEW} of ${whole(rows.length)} rows; all of them are in the CSV.` : "";
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, as a table` }, h("table", {},
    more ? h("caption", {}, more) : null,
    h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { scope: "col", class: numeric[i] ? "number" : null }, c)))),
    h("tbody", {}, lines.map((row) => h("tr", {}, columns.map((_, i) => h("td", { class: numeric[i] ? "number" : null }, numeric[i] ? shown(row[i], 6) : visible(String(row[i] ?? ""))))))) ));
}

// Axes with few round values. x, y: {domain, log, label, ticks, format}. The frame's own x and y map values to places.
function frame(host, width, { height, x, y, label, left = 46, right = 10, top = 10, bottom = x.label ? 40 : 24, more = {} }) {
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, ...more });
  const scaleX = (x.log ? logarithmic : linear)(x.domain, [left, width - right]);
  const scaleY = (y.log ? logarithmic : linear)(y.domain, [height - bottom, top]);
  const format = (axis) => axis.format || ((value) => shown(value, 3));
  for (const value of y.ticks || scaleY.ticks(y.count || 4)) {
    const at = Math.round(scaleY(value)) + 0.5;
    svg.append(s("line", { class: "grid-line", x1: left, x2: width - right, y1: at, y2: at }),
      s("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, format(y)(value)));
  }
  const ticks = x.ticks || scaleX.ticks(x.count || Math.max(3, Math.floor(width / 90)));
  for (const value of ticks) {
    svg.append(s("text", { x: scaleX(value), y: height - bottom + 17, "text-anchor": "middle" }, format(x)(value)));
  }
  svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom + 0.5, y2: height - bottom + 0.5 }));
  if (x.label) svg.append(s("text", { class: "title-axis", x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, x.label));
  if (y.label) svg.append(s("text", { class: "title-axis", x: left - 40, y: top - 8 < 9 ? 9 : top - 8, "text-anchor": "start" }, y.label));
  host.replaceChildren(svg);
  return { svg, x: scaleX, y: scaleY, left, right: width - right, top, bottom: height - bottom };
}

// A path through points; it breaks where one is missing.
function path(points) {
  let text = "", down = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { down = false; continue; }
    text += `${down ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`;
    down = true;
  }
  return text;
}
