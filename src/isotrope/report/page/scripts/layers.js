// Any measures over the layers, each on its own axis, with intervals; one crosshair runs through them all.
const FIRST = ["mean_cosine", "drift_share", "effective_rank_eigenvalues", "isoscore", "sequence_uniformity", "within_share"];

function layersSection() {
  const count = RUNS[0].layers.length;
  if (count < 2) return null;
  const names = measured();
  let picked = FIRST.filter((name) => names.includes(name));
  if (!picked.length) picked = names.slice(0, 4);
  let hovered = null;
  const grid = h("div", { class: "grid" });
  const panels = new Map();

  const chooser = h("details", { class: "picker no-print" });
  const summary = h("summary");
  function retitle() { summary.textContent = `Choose measures: ${picked.length} of ${names.length} shown`; }

  function arrange() {
    retitle();
    for (const name of picked) if (!panels.has(name)) panels.set(name, measurePanel(name));
    grid.replaceChildren(...picked.map((name) => panels.get(name)));
  }

  function hover(at) {
    hovered = at;
    for (const name of picked) panels.get(name).cross(at);
  }

  function measurePanel(name) {
    const draw = (host, width) => drawMeasure(host, width, name, { hover, go: goToLayer });
    const box = panel({
      title: about(name).title, name: fileName(name), draw, data: () => measureRows(name),
      text: () => about(name).says,
    });
    box.cross = (at) => {
      const line = box.drawing.querySelector(".cross");
      const x = box.drawing.querySelector("svg")?.places?.[at];
      if (!line) return;
      line.toggleAttribute("hidden", at === null);
      if (at !== null) { line.setAttribute("x1", x); line.setAttribute("x2", x); }
    };
    when(["layer"], box.redraw);
    return box;
  }

  const search = h("input", { type: "search", placeholder: "Find a measure", "aria-label": "Find a measure", oninput: filter });
  const fields = GROUPS.map((group) => {
    const own = names.filter((name) => about(name).group === group);
    return own.length ? h("fieldset", {}, h("legend", {}, GROUP_TITLES[group]), h("div", { class: "choices" }, own.map((name) => {
      const choice = check(about(name).title, picked.includes(name), (on) => {
        picked = names.filter((other) => (other === name ? on : picked.includes(other)));
        picked.sort((a, b) => rank(a) - rank(b));
        arrange();
      });
      choice.title = `${name}: ${about(name).says}`;
      choice.querySelector("input").value = name;
      return choice;
    }))) : null;
  });
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length + names.indexOf(name));
  function filter() {
    const query = search.value.toLowerCase();
    for (const choice of chooser.querySelectorAll(".choices .check")) choice.hidden = !`${choice.textContent} ${choice.title}`.toLowerCase().includes(query);
    for (const field of chooser.querySelectorAll("fieldset")) field.hidden = !field.querySelector(".check:not([hidden])");
  }
  chooser.append(summary, search, ...fields.filter(Boolean));
  arrange();
  const lead = COMPARES
    ? "Each run has its colour; bands are 95 % intervals, dotted lines what isotropic rows would give. Choose a layer to look into it."
    : "Bands are 95 % intervals, dotted lines what isotropic rows of the same number and width would give. Point at a layer for its exact value, choose it to look into it.";
  const paired = COMPARES && DATA.alignments.some((a) => a.by === "depth") ? ` Layers are counted as in ${RUNS[0].name}; those of the others are drawn at the same relative depth.` : "";
  return section("layers", "Layers", lead + paired, COMPARES ? runLegend() : null, chooser, grid);
}

function runLegend() {
  return h("ul", { class: "legend" }, RUNS.map((run, i) => h("li", {}, h("i", { class: "swatch", style: { background: `var(${runColor(i)})` } }), h("span", {}, run.name))));
}

function measureRows(name) {
  const columns = [...(COMPARES ? ["run"] : []), "layer", "value", "low", "high", "isotropic", "n", "note"];
  const rows = RUNS.flatMap((run) => run.layers.map((layer, i) => {
    const r = reading(run, name, i) || {};
    return [...(COMPARES ? [run.name] : []), layer.name, r.value ?? null, r.low ?? null, r.high ?? null, r.null ?? null, r.n ?? null, r.note || r.reason || ""];
  }));
  return { columns, rows };
}

function drawMeasure(host, width, name, { hover, go }) {
  const layers = RUNS[0].layers, count = layers.length;
  const all = RUNS.flatMap((run) => ["value", "low", "high"].flatMap((end) => (run.readings[name] ? run.readings[name][end] : []))).filter((v) => v !== null);
  const nulls = RUNS.flatMap((run) => (run.readings[name] ? run.readings[name].null : [])).filter((v) => v !== null);
  const inside = nulls.length && all.length && Math.max(...nulls) - Math.max(...all) < 1.5 * (Math.max(...all) - Math.min(...all) || 1) && Math.min(...all) - Math.min(...nulls) < 1.5 * (Math.max(...all) - Math.min(...all) || 1);
  const low = all.some((v) => v < 0) ? null : 0;
  const domain = span(inside ? [...all, ...nulls] : all, { floor: low });
  const every = Math.ceil(count / Math.max(2, Math.floor((width - 60) / 34)));
  const ticks = layers.map((_, i) => i).filter((i) => i % every === 0 || (i === count - 1 && (count - 1) % every > every / 2));
  const f = frame(host, width, {
    height: 172, left: 44,
    x: { domain: [0, Math.max(count - 1, 1)], ticks, format: (i) => shortName(layers[i]) },
    y: { domain, count: 3 },
    label: `${about(name).title} over ${count} layers. Arrow keys move, Enter looks into a layer.`,
    more: { tabindex: "0" },
  });
  f.svg.classList.add("clickable");
  const half = (f.x(1) - f.x(0)) / 2;
  f.svg.append(s("rect", { class: "picked", x: Math.max(f.left - 4, f.x(state.layer) - Math.min(half, 9)), width: Math.min(2 * half, 18), y: f.top, height: f.bottom - f.top }));
  f.svg.append(s("line", { class: "cross", y1: f.top, y2: f.bottom, hidden: true }));
  RUNS.forEach((run, k) => {
    if (!run.readings[name]) return;
    const there = layers.map((_, i) => i).filter((i) => layerIn(run, i) >= 0);
    const at = there.map((i) => reading(run, name, layerIn(run, i)) || {});
    const group = s("g", { vars: { "--stroke": `var(${COMPARES ? runColor(k) : "--accent"})` } });
    const ends = at.map((r, i) => [f.x(there[i]), r]).filter(([, r]) => Number.isFinite(r.low ?? NaN) && Number.isFinite(r.high ?? NaN));
    if (ends.length > 1) group.append(s("path", { class: "band", d: path([...ends.map(([x, r]) => [x, f.y(r.high)]), ...ends.reverse().map(([x, r]) => [x, f.y(r.low)])]) + "Z" }));
    if (inside && k === 0) group.append(s("path", { class: "null", fill: "none", d: path(at.map((r, i) => [f.x(there[i]), Number.isFinite(r.null ?? NaN) ? f.y(r.null) : NaN])) }));
    group.append(s("path", { class: "line", d: path(at.map((r, i) => [f.x(there[i]), r.value === null || r.value === undefined ? NaN : f.y(r.value)])) }));
    at.forEach((r, i) => { if (Number.isFinite(r.value ?? NaN)) group.append(s("circle", { class: there[i] === state.layer ? "dot here" : "dot", cx: f.x(there[i]), cy: f.y(r.value), r: count > 24 ? 2.75 : 3.5, "data-layer": there[i] })); });
    f.svg.append(group);
  });
  f.svg.places = layers.map((_, i) => f.x(i));
  const say = (i, x, y) => {
    hover(i);
    const lines = RUNS.flatMap((run) => {
      const own = layerIn(run, i), r = own < 0 ? null : reading(run, name, own);
      const where = alignment(run)?.by === "depth" && r ? `, layer ${run.layers[own].name}` : "";
      return !r ? [] : COMPARES ? [`${run.name}${where}: ${exact(r.value) || r.reason || "no value"} (${interval(r.low, r.high)})`] : tipLines(r, name);
    });
    if (COMPARES) lines.push({ soft: about(name).says });
    showTip(x, y, `${about(name).title}, ${VECTORS ? "the vectors" : `layer ${layers[i].name}`}`, lines);
  };
  const nearest = (event) => {
    const box = f.svg.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.round(f.x.back(((event.clientX - box.left) * width) / box.width))));
  };
  let focus = state.layer;
  f.svg.addEventListener("pointermove", (event) => say(nearest(event), event.clientX, event.clientY));
  f.svg.addEventListener("pointerleave", () => { hover(null); hideTip(); });
  f.svg.addEventListener("click", (event) => go(nearest(event)));
  f.svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) { focus = Math.min(count - 1, Math.max(0, focus + step)); }
    else if (event.key === "Enter") { go(focus); return; }
    else return;
    event.preventDefault();
    const box = f.svg.getBoundingClientRect();
    say(focus, box.left + (f.x(focus) * box.width) / width, box.top + 20);
  });
  f.svg.addEventListener("blur", () => { hover(null); hideTip(); });
}

const shortName = (layer) => (layer.name.length > 6 ? layer.label : layer.name);

function goToLayer(at) {
  hideTip();
  choose({ layer: at });
  document.getElementById("layer").scrollIntoView();
}
