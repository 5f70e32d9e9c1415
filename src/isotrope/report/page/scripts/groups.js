// The readings of each group apart, where the scan was told to make groups.
function groupsPart(run) {
  if (!run.groups.length) return null;
  const table = sortable({
    caption: "Groups", name: fileOfLayer("groups"), page: 15, rows: () => run.groups.filter((r) => r.layer === label(run)), filter: (r) => `${r.group} ${about(r.measure).title}`, placeholder: "Find a group or measure",
    columns: [
      { title: "Group", get: (r) => r.group }, { title: "Measure", get: (r) => about(r.measure).title }, { title: "Value", number: true, get: (r) => r.value },
      { title: "Low", number: true, get: (r) => r.low }, { title: "High", number: true, get: (r) => r.high }, { title: "n", number: true, get: (r) => r.n, show: whole },
    ],
  });
  when(["layer"], table.update);
  return h("figure", { class: "panel apart", "aria-label": "Groups" }, h("header", {}, h("h3", {}, "Groups")), table);
}
