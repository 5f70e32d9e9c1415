// Which coordinates carry the norm and the common direction: a few of hundreds are outliers.
function coordinatesPart(run) {
  if (!Object.keys(run.coordinates).length) return null;
  const own = () => {
    const found = run.coordinates[label(run)];
    return found && Object.fromEntries(Object.entries(found).map(([name, pack]) => [name, unpack(pack)]));
  };
  const ranked = () => { const c = own(); return c ? Array.from(c.norm_share.keys()).sort((i, j) => Math.max(c.norm_share[j], c.cosine_share[j]) - Math.max(c.norm_share[i], c.cosine_share[i])) : []; };
  const half = (shares) => { let sum = 0, count = 0; for (const v of Float32Array.from(shares).sort().reverse()) { sum += v; count++; if (sum >= 0.5) break; } return count; };
  const box = panel({
    title: "Outlier dimensions", name: fileOfLayer("coordinates"),
    text: () => {
      const c = own();
      if (!c) return `There are no coordinates of ${layerWords()}.`;
      const d = c.norm_share.length, even = `evenly shared it would take ${whole(Math.ceil(d / 2))}`;
      return `${whole(half(c.norm_share))} of ${whole(d)} coordinates carry half of the squared norm and ${whole(half(c.cosine_share))} half of the mean cosine; ${even}.`;
    },
    draw: (host, width) => {
      const c = own();
      if (!c) { host.replaceChildren(); return; }
      const top = ranked().slice(0, 10), high = Math.max(...top.map((i) => Math.max(c.norm_share[i], c.cosine_share[i])));
      const row = 25, height = top.length * row + 34, left = 52;
      const svg = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Shares of the ten strongest coordinates of ${layerWords()}` });
      const x = linear([0, high * 1.12], [left, width - 44]);
      top.forEach((i, k) => {
        const y = k * row + 8;
        svg.append(s("text", { class: "label", x: left - 8, y: y + 13, "text-anchor": "end" }, String(i)),
          s("rect", { class: "bar-mark", x: left, y, width: Math.max(1, x(c.norm_share[i]) - left), height: 8, rx: 1 }),
          s("rect", { class: "bar-mark", vars: { "--stroke": "var(--c1)" }, x: left, y: y + 9, width: Math.max(1, x(c.cosine_share[i]) - left), height: 8, rx: 1 }),
          s("text", { x: x(Math.max(c.norm_share[i], c.cosine_share[i])) + 6, y: y + 13 }, `${shown(100 * Math.max(c.norm_share[i], c.cosine_share[i]), 3)} %`));
      });
      svg.append(s("line", { class: "axis", x1: left, x2: left, y1: 2, y2: top.length * row + 8 }));
      svg.append(s("text", { class: "title-axis", x: left - 8, y: height - 6, "text-anchor": "end" }, "coord."));
      host.replaceChildren(svg, h("ul", { class: "legend" },
        h("li", {}, h("i", { class: "swatch", style: { background: "var(--accent)" } }), h("span", {}, "share of the squared norm")),
        h("li", {}, h("i", { class: "swatch", style: { background: "var(--c1)" } }), h("span", {}, "share of the mean cosine"))));
    },
    data: () => { const c = own(); return { columns: ["coordinate", "norm_share", "cosine_share", "mean", "deviation"], rows: ranked().map((i) => [i, c.norm_share[i], c.cosine_share[i], c.mean[i], c.deviation[i]]) }; },
  });
  when(["layer"], box.redraw);
  return box;
}
