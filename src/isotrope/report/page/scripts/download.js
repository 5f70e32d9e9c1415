// Files that the page makes itself: CSV, JSON and SVG. Nothing is fetched.
function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Every text is quoted, and one that a spreadsheet would run as a formula gets an apostrophe before it.
function cell(value) {
  const number = typeof value === "number";
  let text = number ? exact(value) : value === null || value === undefined ? "" : String(value);
  if (!number && /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) text = "'" + text;
  return number || text === "" ? text : `"${text.replaceAll('"', '""')}"`;
}

const csv = ({ columns, rows }) => [columns, ...rows].map((row) => Array.from(row, cell).join(",")).join("\r\n") + "\r\n";
const saveCsv = (name, data) => save(`${name}.csv`, "text/csv", csv(data));
const saveJson = (name, data) => save(`${name}.json`, "application/json", JSON.stringify(data, null, 1));

const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor", "paint-order"];

// An SVG as it looks now, with its colours written into it, so that it looks the same anywhere.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const sources = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(sources[i]);
    for (const name of PAINT) node.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role"]) node.removeAttribute(name);
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.prepend(s("rect", { width: box.width, height: box.height, fill: color("--surface") }));
  return new XMLSerializer().serializeToString(copy);
}

const saveSvg = (name, svg) => save(`${name}.svg`, "image/svg+xml", typeof svg === "string" ? svg : standalone(svg));
