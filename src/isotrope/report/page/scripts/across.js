// Whether layers that have drifted further from the origin are also the less isotropic ones.
function acrossSection() {
  const shownRuns = RUNS.filter((run) => run.readings.drift_norm && run.readings.mean_cosine);
  if (!shownRuns.length || RUNS[0].layers.length < 3) return null;
  const points = shownRuns.flatMap((run) => run.layers.map((layer, i) => ({ run, layer, x: run.readings.drift_norm.value[i], y: run.readings.mean_cosine.value[i] }))).filter((p) => p.x !== null && p.y !== null);
  const box = panel({
    title: "Drift and mean cosine, layer by layer", name: fileName("drift"),
    draw: (host, width) => {
      const f = frame(host, width, {
        height: 300, top: 22, x: { domain: span(points.map((p) => p.x), { floor: 0 }), label: "drift: length of the mean row" }, y: { domain: span(points.map((p) => p.y), { floor: points.some((p) => p.y < 0) ? null : 0 }), label: "mean cosine" },
        label: "Mean cosine of each layer against its drift",
      });
      const taken = [];
      for (const run of shownRuns) {
        const own = points.filter((p) => p.run === run), k = RUNS.indexOf(run);
        const group = s("g", { vars: { "--stroke": COMPARES ? `var(${runColor(k)})` : "var(--accent)" } });
        group.append(s("path", { class: "line", opacity: 0.35, d: path(own.map((p) => [f.x(p.x), f.y(p.y)])) }));
        for (const p of own) {
          const dot = s("circle", { class: "dot", cx: f.x(p.x), cy: f.y(p.y), r: 4.5 });
          dot.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, `Layer ${p.layer.name}${COMPARES ? ` of ${run.name}` : ""}`, [`drift ${exact(p.x)}`, `mean cosine ${exact(p.y)}`]));
          dot.addEventListener("pointerleave", hideTip);
          group.append(dot);
        }
        for (const p of endsFirst(own)) {
          const name = shortName(p.layer), x = f.x(p.x) + 7, y = f.y(p.y) - 6;
          if (taken.some((other) => Math.abs(other.y - y) < 12 && x < other.end && other.x < x + 8 * name.length)) continue;
          taken.push({ x, y, end: x + 8 * name.length });
          group.append(s("text", { class: "halo", x, y }, name));
        }
        f.svg.append(group);
      }
      if (COMPARES) host.append(runLegend());
    },
    data: () => ({ columns: ["run", "layer", "drift_norm", "mean_cosine"], rows: points.map((p) => [p.run.name, p.layer.name, p.x, p.y]) }),
  });
  const table = h("figure", { class: "panel", "aria-label": "Correlation" }, h("header", {}, h("h3", {}, "Correlation over layers")),
    h("p", { class: "about" }, "Neighbouring layers are not independent, so p describes how rare such agreement is among random orders, and proves nothing."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Correlation over layers" }, h("table", {},
      h("thead", {}, h("tr", {}, COMPARES ? h("th", { scope: "col" }, "Run") : null, h("th", { scope: "col" }, "Measure"), h("th", { scope: "col", class: "number" }, "Value"))),
      h("tbody", {}, RUNS.flatMap((run) => run.across.map((r) => h("tr", {}, COMPARES ? h("td", {}, run.name) : null, h("td", { title: about(r.measure).says }, about(r.measure).title), h("td", { class: r.value === null ? "words" : "number" }, r.value === null ? r.reason : shown(r.value)))))))));
  return section("drift", "Drift and anisotropy", "A space leans to one side when all rows share a mean. Layers on a rising line owe their cosines to that common drift (Godey et al. 2023).",
    h("div", { class: "pair" }, box, RUNS.some((run) => run.across.length) ? table : null));
}

// The last and the first, then the others: where names would cover each other, these are kept.
function endsFirst(points) {
  return [points[points.length - 1], ...points.slice(0, -1)];
}
