// What changed from the first run to each of the others, what lies beyond its interval first.
function changesSection() {
  if (!COMPARES) return null;
  const changes = DATA.changes.filter((c) => c.difference);
  const counts = [true, false, null].map((kind) => changes.filter((c) => c.beyond === kind).length);
  const told = { true: "beyond its interval", false: "within its interval", null: "no interval" };
  const layerOf = (c) => (c.layer === null ? "all" : (RUNS[0].layers.find((x) => x.label === c.layer) || { name: c.layer }).name);
  const worth = (c) => { const better = judged(c.measure); return better ? ((c.difference > 0) === (better === "higher") ? "better" : "worse") : ""; };
  let only = false;
  const table = sortable({
    caption: "Changes", name: fileName("changes"), page: 25, placeholder: "Find a measure, layer or run",
    rows: () => changes.filter((c) => !only || c.beyond).sort((a, b) => (b.beyond === true) - (a.beyond === true) || (a.beyond === null) - (b.beyond === null)),
    filter: (c) => `${about(c.measure).title} ${c.measure} layer ${layerOf(c)} ${RUNS[c.run].name} ${told[c.beyond]}`,
    columns: [
      ...(RUNS.length > 2 ? [{ title: "Run", get: (c) => RUNS[c.run].name }] : []),
      ...(VECTORS ? [] : [{ title: "Layer", get: layerOf }]), { title: "Measure", get: (c) => about(c.measure).title, show: (value, c) => h("span", { title: about(c.measure).says }, value) },
      { title: "Before", number: true, get: (c) => c.before }, { title: "After", number: true, get: (c) => c.after },
      { title: "Difference", number: true, get: (c) => c.difference, show: signed, class: (c) => (c.beyond ? `beyond ${worth(c)}` : "soft") },
      { title: "Sure?", get: (c) => told[c.beyond], class: (c) => (c.beyond ? "beyond" : "soft"), show: (value, c) => (c.beyond ? `\u25cf ${value}` : value) },
      { title: "Note", get: (c) => c.note || "", class: "words" },
    ],
  });
  const same = DATA.changes.length - changes.length;
  const lead = `From ${RUNS[0].name} to ${RUNS.length > 2 ? "each of the others" : RUNS[1].name}, of ${whole(DATA.changes.length)} readings that they share ${whole(counts[0])} changed beyond their interval, ${whole(counts[1])} within it, ${whole(counts[2])} without an interval; ${whole(same)} did not change or have no value.`;
  return section("changes", "What changed", lead, h("div", { class: "controls" }, check("Only what lies beyond its interval", false, (on) => { only = on; table.update(); })), table);
}
