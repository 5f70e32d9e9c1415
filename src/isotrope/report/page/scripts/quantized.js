// How the rows fill the cells of an additive and of a product quantizer.
function quantizedSection() {
  const names = measured().filter((name) => about(name).group === "quantized");
  if (!names.length) return null;
  const lead = "Rows are sorted into the cells of trained quantizers; how evenly the cells fill tells of clumps that mean and covariance cannot see.";
  const cut = (name) => name.replace(/_(additive|product)(_\d+x\d+)?$/, "");
  const kinds = [...new Set(names.map(cut))];
  const rows = () => names.map((name) => ({ name, ...about(name), ...reading(RUNS[0], name, state.layer) }));
  const table = sortable({
    caption: "Measures of quantized cells", name: fileOfLayer("quantized"), rows, page: 20,
    columns: [
      { title: "Measure", get: (r) => r.title }, { title: "Value", number: true, get: (r) => r.value }, { title: "Low", number: true, get: (r) => r.low }, { title: "High", number: true, get: (r) => r.high },
      { title: "Isotropic", number: true, get: (r) => r.null }, { title: "n", number: true, get: (r) => r.n, show: whole },
      { title: "Meaning", get: (r) => r.says, class: "words", show: (value, r) => value + (r.reason ? ` No value: ${r.reason}.` : "") },
    ],
  });
  when(["layer"], table.update);
  if (RUNS[0].layers.length < 2) return section("quantized", "Quantized cells", lead, table);
  const panels = kinds.map((kind) => {
    const own = names.find((name) => cut(name) === kind);
    return panel({ title: about(own).title, name: fileName(own), text: () => about(own).says, data: () => measureRows(own), draw: (host, width) => drawMeasure(host, width, own, { hover: () => {}, go: goToLayer }) });
  });
  when(["layer"], () => panels.forEach((box) => box.redraw()));
  return section("quantized", "Quantized cells", lead, h("div", { class: "grid" }, panels), h("div", { class: "apart" }, table));
}
