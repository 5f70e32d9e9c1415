// Advice and evaluations that lie in the run folder.
function adviceSection() {
  const some = RUNS.flatMap((run) => (run.advice ? [advicePanel(run)] : []));
  const evaluations = RUNS.flatMap((run) => run.evaluations.flatMap((e) => e.tables.map((t) => evaluationPanel(run, e.file, t))));
  const notes = RUNS.flatMap((run) => run.notes.map((note) => h("p", { class: "note" }, note)));
  if (!some.length && !evaluations.length && !notes.length) {
    return section("advice", "Advice and evaluation", "The run folder holds none yet. isotrope advise --json > RUN/advice.json and isotrope evaluate \u2026 -o RUN/sts.json put them there, and isotrope report RUN shows them here.");
  }
  return section("advice", "Advice and evaluation", "", ...some, ...evaluations, ...notes);
}

function advicePanel(run) {
  const a = run.advice, none = a.advice === "none";
  const setting = a.parameters ? Object.entries(a.parameters).filter(([, v]) => v !== null && v !== false).map(([k, v]) => `${k} = ${typeof v === "number" ? shown(v) : v}`).join(", ") : "";
  const title = none ? "Leave it alone" : `Repair it by ${a.advice}${setting ? ` (${setting})` : ""}`;
  const facts = [["Layers", a.layers], ["Pooling", a.pooling], ["Evidence", a.evidence], ["Rows", typeof a.rows === "number" ? whole(a.rows) : a.rows]].filter(([, v]) => v !== null && v !== undefined);
  return h("figure", { class: "panel apart", "aria-label": "Advice" },
    h("header", {}, h("h3", {}, COMPARES ? `${run.name}: ${title}` : title)),
    h("dl", { class: "keyed" }, facts.map(([k, v]) => [h("dt", {}, k), h("dd", {}, String(v))])),
    h("ul", { class: "statements" }, (Array.isArray(a.reasons) ? a.reasons : []).map((reason) => h("li", { class: "about" }, String(reason)))));
}

function evaluationPanel(run, file, { title, columns, rows }) {
  const lines = rows.map((row) => ({ row }));
  const numeric = columns.map((_, i) => rows.every((row) => row[i] === null || typeof row[i] === "number") && rows.some((row) => typeof row[i] === "number"));
  const words = `${title}, from ${file}${COMPARES ? ` of ${run.name}` : ""}`;
  return h("figure", { class: "panel apart", "aria-label": words }, h("header", {}, h("h3", {}, words)), sortable({
    caption: words, name: fileName(`${file}-${title}`), page: 15, rows: () => lines, filter: rows.length > 15 ? (l) => l.row.join(" ") : null,
    columns: columns.map((name, i) => ({ title: name.replaceAll("_", " "), number: numeric[i], get: (l) => l.row[i] })),
  }));
}
