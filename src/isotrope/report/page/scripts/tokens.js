// The table of token types: how often, how long, how much they vary with context.
function tokensSection() {
  const run = RUNS[0];
  if (!run.tokens) return null;
  const rows = () => {
    const own = run.tokens.layers[label()];
    if (!own) return [];
    const n = unpack(own.n), q = unpack(own.Q), m = unpack(own.M), v = unpack(own.V);
    return Array.from({ length: own.held }, (_, i) => ({ i, name: run.tokens.names[i], n: n[i], q: q[i], m: m[i], v: v[i] }));
  };
  const table = sortable({
    caption: "Token types", name: fileOfLayer("tokens"), rows, placeholder: "Find a token", filter: (t) => t.name, sort: { column: 1, down: true },
    click: (t) => { choose({ search: t.name }); document.querySelector(".map")?.scrollIntoView(); },
    columns: [
      { title: "Token", get: (t) => t.name, class: "token", show: visible, click: true },
      { title: "n", number: true, get: (t) => t.n, show: whole, hint: "occurrences" },
      { title: "Q", number: true, get: (t) => t.q, hint: "mean squared norm of its occurrences" },
      { title: "M", number: true, get: (t) => t.m, hint: "squared norm of their mean" },
      { title: "V", number: true, get: (t) => t.v, hint: "variance about their mean: what context adds" },
      { title: "V / Q", number: true, get: (t) => (t.q > 0 ? t.v / t.q : null), hint: "share of the squared norm that context decides" },
    ],
  });
  const words = h("p", { class: "note" });
  const tell = () => {
    const held = run.tokens.layers[label()]?.held || 0;
    words.textContent = held < run.tokens.types ? `The ${whole(held)} most frequent of ${whole(run.tokens.types)} types in ${layerWords()}; all of them are in tables/tokens.parquet of the run folder.` : `All ${whole(run.tokens.types)} types in ${layerWords()}.`;
  };
  when(["layer"], () => { table.update(); tell(); });
  tell();
  return section("tokens", "Token types", "n occurrences, Q mean squared norm, M squared norm of the mean, V variance: Q = M + V for every type. Choose a token to see it on the map.", words, table);
}
