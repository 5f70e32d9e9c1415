// All readings of the chosen layer, with what each means.
function readingsPanel() {
  const names = measured();
  const rows = () => names.map((name) => ({ name, ...about(name), ...reading(RUNS[0], name, state.layer) }));
  const table = sortable({
    caption: "All readings of the layer", name: fileOfLayer("readings"), rows, page: 12, placeholder: "Find a measure",
    filter: (r) => `${r.title} ${r.name} ${r.says} ${r.group}`,
    columns: [
      { title: "Measure", get: (r) => r.title, show: (value, r) => h("span", { title: r.name }, value) },
      { title: "Value", number: true, get: (r) => r.value, hint: "exact values are in the CSV" },
      { title: "Low", number: true, get: (r) => r.low }, { title: "High", number: true, get: (r) => r.high },
      { title: "Isotropic", number: true, get: (r) => r.null, hint: "what isotropic rows of the same number and width would give" },
      { title: "n", number: true, get: (r) => r.n, show: whole },
      { title: "Meaning", get: (r) => r.says, class: "words", show: (value, r) => [value, r.reason ? ` No value: ${r.reason}.` : "", r.note ? ` With care: ${r.note}.` : ""].join("") },
    ],
  });
  when(["layer"], table.update);
  const quantized = names.some((name) => about(name).group === "quantized");
  const more = quantized ? null : h("p", { class: "note" }, "Measures of quantized cells take longer and were not asked for; isotrope scan --measures all, or quantized, takes them.");
  return h("figure", { class: "panel apart", "aria-label": "All readings of the layer" }, h("header", {}, h("h3", {}, "All readings")), table, more);
}
