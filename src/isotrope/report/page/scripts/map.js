// Sampled rows in the plane, as they are and repaired, coloured by what is known of them.
const WAYS = [["none", "As it is"], ["softdecay", "SoftDecay"], ["whitening", "Whitening"]];
const MAP_KINDS = { pca: "Principal components", tsne: "t-SNE" };
const MAP_WORDS = {
  pca: "The plane in which the rows spread most; both axes have the same scale.",
  tsne: "Placed so that neighbours by cosine stay neighbours (openTSNE); distances between groups and the size of groups mean little.",
};

function mapPart(run) {
  const parts = Object.keys(run.maps);
  if (!parts.length) return h("p", { class: "note" }, "There is no map: the run kept no rows, or its maps have not been drawn (isotrope report RUN).");
  const has = Object.assign({}, ...run.samples);
  const tokenized = Boolean(has.token && run.tokens);
  const colors = [tokenized && ["frequency", "Frequency"], tokenized && ["token", "Token"], has.position && ["position", "Position"], has.sequence && ["sequence", "Sequence"], ["none", "Nothing"]].filter(Boolean);
  let kind = "pca", way = "none", by = colors[0][0];
  const legend = h("ul", { class: "legend" }), status = h("span", { role: "status" });
  const view = cloud({ height: Math.min(520, Math.max(320, innerHeight * 0.62)), words: "Map of the sampled rows. Plus and minus magnify, arrows move, zero goes back.", tell: describe });
  const here = () => run.maps[label(run)] || null;

  function current() {
    const pack = here()?.[kind]?.[way];
    if (!pack) return null;
    const flat = unpack(pack), n = flat.length / 2;
    const x = new Float32Array(n), y = new Float32Array(n);
    for (let i = 0; i < n; i++) { x[i] = flat[2 * i]; y[i] = flat[2 * i + 1]; }
    return { x, y };
  }
  const known = () => {
    const sample = run.samples[run.sample_of[label(run)]] || {};
    return { token: unpack(sample.token), position: unpack(sample.position), sequence: unpack(sample.sequence) };
  };
  const frequency = () => { const own = run.tokens && run.tokens.layers[label(run)]; return own ? unpack(own.n) : null; };
  const nameOf = (i) => visible(run.tokens.names[i] ?? "(unknown)");

  function describe(i) {
    const k = known(), n = frequency();
    const title = k.token && run.tokens ? nameOf(k.token[i]) : `Row ${whole(i)}`;
    return [title, [
      k.token && n && n[k.token[i]] ? `${whole(n[k.token[i]])} occurrences` : null,
      k.position ? `position ${whole(k.position[i])} of sequence ${whole(k.sequence[i])}` : null,
    ]];
  }

  function update(keep = false) {
    const points = current(), own = here();
    view.box.hidden = !points;
    kinds.querySelectorAll("input").forEach((input) => { input.disabled = !own?.[input.value]; input.checked = input.value === kind; });
    ways.querySelectorAll("input").forEach((input) => { input.disabled = !own?.[kind]?.[input.value]; input.checked = input.value === way; });
    if (!points) { status.textContent = own ? `This map was not drawn for ${layerWords()}.` : `No map was drawn of ${layerWords()}.`; legend.replaceChildren(); return; }
    const { groups, entries, hits } = colouring(points.x.length);
    view.show(points, groups, { keep });
    legend.replaceChildren(...entries);
    status.textContent = `${whole(points.x.length)} sampled rows${state.search ? `, ${whole(hits)} of them match` : ""}`;
  }

  // Which points have which colour: those searched for above all others.
  function colouring(n) {
    const k = known(), all = Array.from({ length: n }, (_, i) => i);
    const size = n > 8000 ? 2.2 : n > 2500 ? 3 : 3.6;
    const query = state.search.trim().toLowerCase();
    if (query && k.token && run.tokens) {
      const wanted = new Set(run.tokens.names.flatMap((name, i) => (name.toLowerCase().includes(query) ? [i] : [])));
      const hits = all.filter((i) => wanted.has(k.token[i])), rest = all.filter((i) => !wanted.has(k.token[i]));
      return { hits: hits.length, groups: [group(rest, color("--dim"), size, 0.55), group(hits, color("--c1"), 6.5, 0.95)], entries: [entry(`matches \u201c${state.search.trim()}\u201d`, color("--c1")), entry("other", color("--dim"))] };
    }
    const plain = { hits: 0, groups: [group(all, color("--accent"), size, 0.5)], entries: [] };
    if (by === "frequency" && k.token && frequency()) return shaded(all, (i) => Math.log10(1 + (frequency()[k.token[i]] || 0)), size, "rare", "frequent", (v) => whole(Math.round(10 ** v - 1)));
    if (by === "position" && k.position) return shaded(all, (i) => Math.log2(1 + k.position[i]), size, "first", "last", (v) => whole(Math.round(2 ** v - 1)));
    if (by === "token" && k.token) return named(all, (i) => k.token[i], nameOf, size);
    if (by === "sequence" && k.sequence) return named(all, (i) => k.sequence[i], (q) => `sequence ${whole(q)}`, size);
    return plain;
  }

  const group = (at, paint, size, fade) => ({ at, paint, size, fade });
  const entry = (text, paint) => h("li", {}, h("i", { class: "swatch", style: { background: paint } }), h("span", {}, text));

  function shaded(all, value, size, from, to, words) {
    const values = all.map(value), low = Math.min(...minMax(values)), high = Math.max(...minMax(values)), steps = 12;
    const bins = Array.from({ length: steps }, () => []);
    all.forEach((i, at) => bins[Math.min(steps - 1, Math.floor(((values[at] - low) / (high - low || 1)) * steps))].push(i));
    const scale = h("i", { class: "ramp", style: { background: `linear-gradient(90deg, ${bins.map((_, b) => ramp(b / (steps - 1))).join(", ")})` } });
    return { hits: 0, groups: bins.map((at, b) => group(at, ramp(b / (steps - 1)), size, 0.75)), entries: [h("li", {}, h("span", {}, `${from} (${words(low)})`), scale, h("span", {}, `${to} (${words(high)})`))] };
  }

  function named(all, value, words, size) {
    const counts = new Map();
    for (const i of all) counts.set(value(i), (counts.get(value(i)) || 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([key]) => key);
    const rest = all.filter((i) => !most.includes(value(i)));
    return {
      hits: 0,
      groups: [group(rest, color("--dim"), size, 0.6), ...most.map((key, c) => group(all.filter((i) => value(i) === key), color(`--c${c}`), size + 1.2, 0.9))],
      entries: [...most.map((key, c) => entry(words(key), color(`--c${c}`))), entry("other", color("--dim"))],
    };
  }

  const kinds = segments("Map", Object.keys(MAP_KINDS).filter((key) => parts.some((part) => run.maps[part][key])).map((key) => [key, MAP_KINDS[key]]), kind, (value) => { kind = value; if (!here()?.[kind]?.[way]) way = "none"; about2.textContent = MAP_WORDS[kind]; update(); });
  const ways = segments("Rows", WAYS, way, (value) => { way = value; update(); });
  const about2 = h("p", { class: "about" }, MAP_WORDS[kind]);
  const search = tokenized && h("input", { type: "search", placeholder: "e.g. the", value: state.search, oninput: (event) => choose({ search: event.target.value }) });
  const title = COMPARES ? `Map of ${run.name}` : "Map of the rows";
  const box = h("figure", { class: "panel apart map", "aria-label": title },
    h("header", {}, h("h3", {}, title), h("span", { class: "note" }, status)), about2,
    h("div", { class: "controls" }, kinds, ways, select("Colour", colors, by, (value) => { by = value; update(true); }), search ? h("label", { class: "grow" }, "Search a token", search) : null),
    view.box, legend,
    h("div", { class: "tools" },
      h("button", { class: "quiet", type: "button", "aria-label": "Map: download CSV", onclick: () => saveCsv(fileOfLayer(`map-${kind}-${way}`)(), mapRows()) }, "CSV"),
      h("button", { class: "quiet", type: "button", "aria-label": "Map: download SVG", onclick: () => saveSvg(fileOfLayer(`map-${kind}-${way}`)(), view.svgText()) }, "SVG")));
  function mapRows() {
    const points = current(), k = known();
    const columns = ["row", "x", "y", ...(k.token && run.tokens ? ["token"] : []), ...(k.position ? ["position", "sequence"] : [])];
    return { columns, rows: Array.from(points ? points.x : [], (x, i) => [i, x, points.y[i], ...(k.token && run.tokens ? [run.tokens.names[k.token[i]] ?? ""] : []), ...(k.position ? [k.position[i], k.sequence[i]] : [])]) };
  }
  when(["layer"], () => { if (!here()?.[kind]) kind = "pca"; if (!here()?.[kind]?.[way]) way = "none"; update(); });
  when(["search"], () => { if (search && search.value !== state.search) search.value = state.search; update(true); });
  themed.push(() => update(true));
  new ResizeObserver(([e]) => { const now = Math.floor(e.contentRect.width); if (now) { view.resize(now); update(); } }).observe(view.box);
  return box;
}

function minMax(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
}
