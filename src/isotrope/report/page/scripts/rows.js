// Rows to look at, by their ids and texts: hubs, rows that are never found, duplicates, outliers and broken rows.
const NUMBER = (title, name, hint, digits) => ({ title, number: true, get: (r) => r[name], show: (value) => shown(value, digits), hint });
const COUNTED = (title, name, hint) => ({ title, number: true, get: (r) => r[name], show: whole, hint });
const NEAREST = [NUMBER("Nearest", "cosine", "cosine to its nearest neighbour", 3), { title: "Which", get: (r) => r.nearest, class: "row-id row-other" }];

const ROW_KINDS = [
  ["hubs", "Hubs", ["hub_rows"], "In far more of the other rows' lists of ten nearest neighbours than the spread of all rows explains, and in 50 at least; the mean is ten. They come back for many searches.", [COUNTED("Lists", "occurrences", "lists of ten nearest neighbours that it is in"), ...NEAREST]],
  ["never_found", "Never found", ["never_found_rows"], "In no other row's list of ten nearest neighbours: a search among these rows hardly returns them. The farthest from others come first.", [NUMBER("Score", "outlier_score", "distance to the tenth neighbour, in median absolute deviations", 3), ...NEAREST]],
  ["duplicates", "Duplicates", [], "Rows with the same numbers, found among all rows, and rows of cosine 0.99 or more to each other among the rows compared.", [COUNTED("Group", "group", "rows of one group belong together"), COUNTED("Rows in it", "size"), { title: "Kind", get: (r) => (r.equal ? "equal" : "alike") }]],
  ["outliers", "Outliers", ["outlier_rows"], "Six or more median absolute deviations farther from their tenth neighbour than the median row.", [NUMBER("Score", "outlier_score", "distance to the tenth neighbour, in median absolute deviations", 3), ...NEAREST]],
  ["extreme", "Far too long or short", ["long_rows", "short_rows"], "By length, compared with the median row.", [NUMBER("Times the median", "times_median", null, 3)]],
  ["zero", "Zero rows", ["zero_rows"], "All of their numbers are zero; they were left out.", []],
  ["nonfinite", "Rows with NaN or infinity", ["nonfinite_rows"], "They were left out.", []],
];

function rowsSection() {
  const run = RUNS[0];
  if (!run.cosines) return null;
  const tables = ROW_KINDS.filter(([kind]) => run.rows[kind]?.length).map((about) => rowsPanel(run, ...about));
  const examined = run.counts.examined_rows;
  const none = tables.length ? null : h("p", { class: "note" }, "No row stands out.");
  return section("rows", "Rows", `Rows by name, from exact neighbours by cosine among ${whole(examined)} rows. All of them are in tables/rows.parquet of the run folder.`,
    cosinesPart(run), none, h("div", { class: "stack apart" }, tables));
}

function rowsPanel(run, kind, title, counted, words, columns) {
  const rows = run.rows[kind], total = counted.reduce((sum, name) => sum + (run.counts[name] || 0), 0);
  const name = (id, r) => [h("span", { class: "row-id" }, visible(String(id))), r.text ? h("span", { class: "row-text" }, visible(r.text)) : null];
  const table = sortable({
    caption: title, name: fileName(kind), page: 5, rows: () => rows, filter: rows.length > 5 ? (r) => `${r.id} ${r.text || ""}` : null, placeholder: "Find an id or a text",
    columns: [{ title: "Id", get: (r) => r.id, show: name, class: "row-name" }, ...columns],
  });
  const count = total > rows.length ? ` The worst ${whole(rows.length)} of ${whole(total)}.` : "";
  return h("figure", { class: "panel", "aria-label": title }, h("header", {}, h("h3", {}, `${title} (${whole(total || rows.length)})`)), h("p", { class: "about" }, words + count), table);
}
