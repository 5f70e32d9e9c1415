// What changed from the first run to each of the others, what lies beyond its interval first.
function changesSection() {
  if (!COMPARES) return null;
  const changes = DATA.changes.filter((c) => c.difference);
  const counts = [true, false, null].map((kind) => changes.filter((c) => c.beyond === kind).length);
  const told = { true: "beyond its interval", false: "within its interval", null: "no interval" };
  const named = (run, label) => (run.layers.find((x) => x.label === label) || { name: label }).name;
  const byDepth = DATA.alignments.some((a) => a.by === "depth");
  const layerOf = (c) => (c.layer === null ? "all" : byDepth ? `${named(RUNS[0], c.layer)} : ${named(RUNS[c.run], c.other_layer)}` : named(RUNS[0], c.layer));
  let only = false;
  const table = sortable({
    caption: "Changes", name: fileName("changes"), page: 25, placeholder: "Find a measure, layer or run",
    rows: () => changes.filter((c) => !only || c.beyond).sort((a, b) => (b.beyond === true) - (a.beyond === true) || (a.beyond === null) - (b.beyond === null)),
    filter: (c) => `${about(c.measure).title} ${c.measure} layer ${layerOf(c)} ${RUNS[c.run].name} ${told[c.beyond]}`,
    columns: [
      ...(RUNS.length > 2 ? [{ title: "Run", get: (c) => RUNS[c.run].name }] : []),
      ...(VECTORS ? [] : [{ title: "Layer", get: layerOf }]), { title: "Measure", get: (c) => about(c.measure).title, show: (value, c) => h("span", { title: about(c.measure).says }, value) },
      { title: "Before", number: true, get: (c) => c.before }, { title: "After", number: true, get: (c) => c.after },
      { title: "Difference", number: true, get: (c) => c.difference, show: signed, class: (c) => (c.beyond ? "beyond" : "soft") },
      { title: "Sure?", get: (c) => told[c.beyond], class: (c) => (c.beyond ? "beyond" : "soft"), show: (value, c) => (c.beyond ? `\u25cf ${value}` : value) },
      { title: "Note", get: (c) => c.note || "", class: "words" },
    ],
  });
  const same = DATA.changes.length - changes.length;
  const lead = `From ${RUNS[0].name} to ${RUNS.length > 2 ? "each of the others" : RUNS[1].name}, of ${whole(DATA.changes.length)} readings that they share ${whole(counts[0])} changed beyond their interval, ${whole(counts[1])} within it, ${whole(counts[2])} without an interval; ${whole(same)} did not change or have no value.`;
  return section("changes", "What changed", lead, ...alignmentNotes(named), h("div", { class: "controls" }, check("Only what lies beyond its interval", false, (on) => { only = on; table.update(); })), table);
}

// Whether the rows of two runs differ, by two-sample tests: what was compared, and one line for each result.
const SHIFT_NAMES = { mean_shift: "Mean", covariance: "Covariance", neighbourhoods: "Neighbourhoods", neighbour_overlap: "Neighbours that stayed", row_cosine: "Cosine of old and new" };
function shiftSection() {
  if (!COMPARES || !DATA.shifts.length) return null;
  const parts = DATA.shifts.flatMap((shift) => {
    const layer = RUNS[0].layers.find((x) => x.label === shift.layer) || { name: shift.layer };
    const where = [RUNS.length > 2 ? RUNS[shift.run].name : "", VECTORS ? "" : `layer ${layer.name}`].filter(Boolean).join(", ");
    const head = h("p", { class: "note" }, where ? `${where}: ${shift.words}` : shift.words);
    if (!shift.results.length) return [head];
    const cell = (value) => h("td", { class: "number", "data-value": exact(value) }, value === null ? "" : shown(value));
    const rows = shift.results.map((r) => h("tr", { "data-test": r.test },
      h("th", { scope: "row" }, SHIFT_NAMES[r.test]), h("td", { class: r.significant ? "words beyond" : "words" }, r.text),
      cell(r.effect), h("td", { class: "number" }, `${shown(r.low)} to ${shown(r.high)}`), cell(r.p), cell(r.corrected)));
    const titles = [["", false], ["In words", false], ["Effect", true], ["95 % interval", true], ["p", true], ["Corrected p", true]];
    return [head, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Two-sample tests ${where}`.trim() }, h("table", {},
      h("thead", {}, h("tr", {}, titles.map(([title, number]) => h("th", { scope: "col", class: number ? "number" : null }, title)))), h("tbody", {}, rows)))];
  });
  return section("shift", "Did the rows shift?", "Permutation tests of sampled rows. With many rows even a tiny difference is significant; the effect says whether it matters.", ...parts);
}

// How layers were paired where that is not plain, and which have no partner.
function alignmentNotes(named) {
  return DATA.alignments.flatMap((a, i) => {
    const other = RUNS[i + 1], list = (run, labels) => labels.map((label) => named(run, label)).join(", ");
    const words = [
      a.by === "depth" ? `Layers of ${RUNS[0].name} (${whole(RUNS[0].layers.length)}) and of ${other.name} (${whole(other.layers.length)}) are paired by relative depth.` : "",
      a.only_first.length ? `Without a partner in ${RUNS[0].name}: layers ${list(RUNS[0], a.only_first)}.` : "",
      a.only_second.length ? `Without a partner in ${other.name}: layers ${list(other, a.only_second)}.` : "",
    ].filter(Boolean);
    return words.length ? [h("p", { class: "note pairing" }, words.join(" "))] : [];
  });
}
