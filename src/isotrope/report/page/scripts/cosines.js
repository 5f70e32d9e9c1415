// How alike random pairs and nearest neighbours are, and the cosines that few random pairs reach.
const RATE_WORDS = (rate) => `1 in ${whole(Math.round(1 / rate))}`;

function cosinesPart(run) {
  const q = run.cosines;
  if (!q) return null;
  const total = (counts) => counts.reduce((sum, count) => sum + count, 0);
  const kinds = [["background", "random pairs", "--before"], ["nearest", "nearest neighbours", "--accent"]];
  const shares = Object.fromEntries(kinds.map(([kind]) => [kind, q[kind].map((count) => count / total(q[kind]))]));
  const cuts = q.cutoffs.map(([rate, cosine]) => `${cosine.toFixed(3)} (${RATE_WORDS(rate)})`);
  return panel({
    title: "Cosines", name: fileName("cosines"), wide: true,
    text: () => `${whole(total(q.background))} random pairs of rows, and the nearest neighbour of each of ${whole(total(q.nearest))} rows. A cut-off is the cosine that only a small share of random pairs reaches${cuts.length ? `: ${cuts.join(", ")}` : ""}. Neighbours to the right of it stand out from chance; the further the two hills overlap, the less a score says by itself. isotrope calibrate gives cut-offs with their intervals.`,
    draw: (host, width) => {
      const from = q.low[0], to = q.high[q.high.length - 1];
      const most = Math.max(...kinds.flatMap(([kind]) => shares[kind]));
      const top = 26 + 15 * q.cutoffs.length;
      const f = frame(host, width, {
        height: 260 + 15 * q.cutoffs.length, top, x: { domain: [from, to], label: "cosine" },
        y: { domain: [0, most * 1.05], count: 3, label: "share", format: (value) => `${shown(100 * value, 2)} %` },
        label: "Histogram of the cosines of random pairs and of nearest neighbours",
      });
      for (const [kind, , stroke] of kinds) {
        const steps = shares[kind].flatMap((share, i) => [[f.x(q.low[i]), f.y(share)], [f.x(q.high[i]), f.y(share)]]);
        const outline = path([[f.x(from), f.bottom], ...steps, [f.x(to), f.bottom]]);
        f.svg.append(s("path", { d: `${outline}Z`, fill: `var(${stroke})`, opacity: 0.22 }), s("path", { class: "line", d: outline, vars: { "--stroke": `var(${stroke})` } }));
      }
      // Labels to the left of their lines, the last one on top, or to the right, the first one on top: no line crosses them.
      const left = q.cutoffs.length > 0 && f.x(q.cutoffs[q.cutoffs.length - 1][1]) > width / 2;
      q.cutoffs.forEach(([rate, cosine], i) => {
        const at = Math.round(f.x(cosine)) + 0.5, y = 24 + 15 * (left ? q.cutoffs.length - 1 - i : i);
        f.svg.append(s("line", { class: "cut", x1: at, x2: at, y1: y - 4, y2: f.bottom }),
          s("text", { class: "label halo", x: at + (left ? -5 : 5), y, "text-anchor": left ? "end" : "start" }, `\u2265 ${cosine.toFixed(3)}: ${RATE_WORDS(rate)} random pairs`));
      });
      host.append(h("ul", { class: "legend" }, kinds.map(([, words, stroke]) => h("li", {}, h("i", { class: "swatch", style: { background: `var(${stroke})` } }), h("span", {}, words)))));
    },
    data: () => ({ columns: ["kind", "low", "high", "count"], rows: [...kinds.flatMap(([kind]) => q[kind].map((count, i) => [kind, q.low[i], q.high[i], count])), ...q.cutoffs.map(([rate, cosine]) => [`cut-off ${rate}`, cosine, cosine, null])] }),
  });
}
