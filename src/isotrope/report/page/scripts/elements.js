// Elements from plain values. Text becomes text and never markup, whatever the corpus holds.
function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "vars") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const h = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

let numbered = 0;
const fresh = (name) => `${name}-${++numbered}`;

function select(label, options, value, change) {
  const chosen = h("select", { onchange: (event) => change(event.target.value) });
  chosen.append(...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("label", {}, label, chosen);
}

function segments(label, options, value, change) {
  const name = fresh("choice");
  const choices = options.map(([key, text]) =>
    h("label", {},
      h("input", { type: "radio", name, value: key, checked: key === value, onchange: () => change(key) }),
      h("span", {}, text)));
  return h("div", { class: "field" }, label, h("div", { class: "segments", role: "radiogroup", "aria-label": label }, choices));
}

function check(label, value, change) {
  return h("label", { class: "check" },
    h("input", { type: "checkbox", checked: value, onchange: (event) => change(event.target.checked) }), label);
}

function section(id, title, lead, ...children) {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { class: "section", id, "aria-labelledby": `${id}-title` },
    h("div", { class: "head" }, heading, lead ? h("p", { class: "lead" }, lead) : null), children);
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const runColor = (run) => `--c${run % 8}`;
