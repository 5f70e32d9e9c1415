// The squared norm of a token type's mean against its variance, with the regression (Yamagiwa and Shimodaira 2024).
const FEWEST = 10, MOST = 100000;

function normVariancePart(run) {
  if (!run.tokens) return null;
  const legend = h("ul", { class: "legend" });
  let types = [], line = null;
  const view = cloud({
    height: 340, words: "Variance of each token type against the squared norm of its mean", zooms: false, tell: describe,
    axes: { x: "squared norm of the type\u2019s mean, M", y: "variance, V", lines: () => (line ? [{ paint: color("--c1"), points: line.points }] : []) },
  });
  const own = () => run.tokens.layers[label(run)];

  function describe(i) {
    const t = types[i];
    return [visible(run.tokens.names[t.i]), [`n = ${whole(t.n)}`, `M = ${shown(t.m, 5)}, V = ${shown(t.v, 5)}, Q = ${shown(t.q, 5)}`]];
  }

  function update() {
    box.hidden = !own();  // rows of this layer have no token types
    if (!own()) { types = []; return; }
    const n = unpack(own().n), q = unpack(own().Q), m = unpack(own().M), v = unpack(own().V);
    types = Array.from(n.keys()).filter((i) => n[i] >= FEWEST && n[i] <= MOST).map((i) => ({ i, n: n[i], q: q[i], m: m[i], v: v[i] }));
    line = types.length > 2 ? regression(types.map((t) => t.m), types.map((t) => t.v)) : null;
    const query = state.search.trim().toLowerCase();
    const logs = types.map((t) => Math.log10(t.n)), [low, high] = minMax(logs), steps = 10;
    const bins = Array.from({ length: steps }, () => []), hits = [];
    types.forEach((t, i) => {
      if (query && run.tokens.names[t.i].toLowerCase().includes(query)) hits.push(i);
      else bins[Math.min(steps - 1, Math.floor(((logs[i] - low) / (high - low || 1)) * steps))].push(i);
    });
    view.show({ x: types.map((t) => t.m), y: types.map((t) => t.v) },
      [...bins.map((at, b) => ({ at, paint: query ? color("--dim") : ramp(b / (steps - 1)), size: 4, fade: 0.7 })), { at: hits, paint: color("--c1"), size: 8, fade: 1 }], { whole: true });
    const scale = h("i", { class: "ramp", style: { background: `linear-gradient(90deg, ${bins.map((_, b) => ramp(b / (steps - 1))).join(", ")})` } });
    legend.replaceChildren(
      h("li", {}, h("span", {}, `n = ${whole(Math.round(10 ** low) || 0)}`), scale, h("span", {}, whole(Math.round(10 ** high) || 0))),
      ...(line ? [h("li", {}, h("i", { class: "swatch stroke", style: { background: "var(--c1)" } }), h("span", {}, `slope ${shown(line.slope, 3)}, R\u00b2 ${shown(line.r2, 3)}`))] : []));
    words.textContent = sentence();
  }

  function sentence() {
    const held = own() ? own().held : 0, from = `${whole(types.length)} types with ${FEWEST} to ${whole(MOST)} occurrences`;
    const cut = held < run.tokens.types ? `, of the ${whole(held)} most frequent ones that this page holds for the layer` : "";
    const slope = reading(run, "variance_on_mean_slope", state.layer);
    const told = slope && slope.value !== null ? ` Over all types of the run: slope ${shown(slope.value)} (${interval(slope.low, slope.high)}).` : "";
    return `Types whose mean is long vary less from context to context; a slope of \u22121 is a full trade-off. ${from}${cut}.${told}`;
  }

  const words = h("p", { class: "about" });
  const data = () => ({ columns: ["token", "n", "Q", "M", "V"], rows: types.map((t) => [run.tokens.names[t.i], t.n, t.q, t.m, t.v]) });
  const box = h("figure", { class: "panel", "aria-label": "Norm against variance" }, h("header", {}, h("h3", {}, "Norm against variance")), words, view.box, legend,
    tools({ name: fileOfLayer("norm-variance"), drawing: null, data, title: "Norm against variance", svg: () => view.svgText() }));
  when(["layer", "search"], update);
  themed.push(update);
  new ResizeObserver(([e]) => { const now = Math.floor(e.contentRect.width); if (now) { view.resize(now); update(); } }).observe(view.box);
  return box;
}

function regression(x, y) {
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length, mx = mean(x), my = mean(y);
  let xx = 0, xy = 0, yy = 0;
  x.forEach((v, i) => { xx += (v - mx) ** 2; xy += (v - mx) * (y[i] - my); yy += (y[i] - my) ** 2; });
  if (!(xx > 0)) return null;
  const slope = xy / xx, [low, high] = minMax(x);
  return { slope, r2: yy > 0 ? (xy * xy) / (xx * yy) : NaN, points: [low, high].map((v) => [v, my + slope * (v - mx)]) };
}
