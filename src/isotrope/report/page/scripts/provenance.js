// How the run came about, how to repeat it, and every number to take away.
function provenanceSection() {
  const parts = RUNS.map((run) => {
    const p = run.provenance, versions = Object.entries(p.versions || {}).map(([k, v]) => `${k} ${v}`).join(", ");
    const facts = [
      ["Begun", p.started], ["Took", typeof p.seconds === "number" ? `${shown(p.seconds, 3)} s` : null], ["Seed", p.settings?.seed], ["Sample", typeof p.settings?.sample === "number" ? `${whole(p.settings.sample)} rows` : null],
      ["Versions", versions], ["Platform", p.platform], ["Counted", Object.entries(run.counts).map(([k, v]) => `${k.replaceAll("_", " ")} ${whole(v)}`).join(", ")],
    ].filter(([, v]) => v !== null && v !== undefined && v !== "");
    return h("figure", { class: "panel apart", "aria-label": `Provenance of ${run.name}` },
      h("header", {}, h("h3", {}, COMPARES ? run.name : "This run")),
      p.command ? h("pre", {}, p.command) : null,
      h("dl", { class: "keyed" }, facts.map(([k, v]) => [h("dt", {}, k), h("dd", {}, String(v))])),
      h("details", {}, h("summary", {}, "What was read, whole"), h("pre", {}, JSON.stringify(run.source, null, 1))));
  });
  const table = sortable({
    caption: "Thresholds", rows: () => DATA.thresholds, page: 20,
    columns: [{ title: "Word", get: (t) => t.word }, { title: "Measure", get: (t) => t.measure.replaceAll("_", " ") }, { title: "Threshold", get: (t) => t.bound }, { title: "Meaning", get: (t) => t.meaning, class: "words" }, { title: "Evidence", get: (t) => t.evidence, class: "words" }],
  });
  const readings = () => ({
    columns: ["run", "layer", "measure", "value", "low", "high", "n", "isotropic", "note", "reason"],
    rows: RUNS.flatMap((run) => Object.entries(run.readings).flatMap(([name, of]) => run.layers.map((layer, i) => [run.name, layer.label, name, of.value[i], of.low[i], of.high[i], of.n[i], of.null[i], of.note[i], of.reason[i]]))),
  });
  const button = (text, act) => h("button", { type: "button", onclick: act }, text);
  return section("repeat", "How to repeat it", "The command, the seed and the versions give the same numbers again.", ...parts,
    h("figure", { class: "panel apart", "aria-label": "Thresholds" }, h("header", {}, h("h3", {}, "What the verdict\u2019s words mean")), table),
    h("div", { class: "controls no-print", style: { marginTop: "1.25rem" } },
      button("All readings as CSV", () => saveCsv(fileName("readings")(), readings())),
      button("All readings as JSON", () => saveJson(fileName("readings")(), { measures: DATA.measures, ...readings() })),
      button("Everything in this page as JSON", () => saveJson(fileName("report")(), DATA))));
}
