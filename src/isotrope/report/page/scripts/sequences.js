// How alike the tokens of single sequences are, one sequence at a time.
function sequencesPart(run) {
  if (!Object.keys(run.sequences).length) return null;
  const own = () => { const found = run.sequences[label(run)]; return found && { length: unpack(found.length), uniformity: unpack(found.uniformity) }; };
  const box = panel({
    title: "Uniformity of single sequences", name: fileOfLayer("sequences"),
    text: () => {
      const r = reading(run, "sequence_uniformity", state.layer), q = own();
      if (!q) return "There are no sequences of this layer.";
      const told = r && r.value !== null ? ` Over all sequences of the run the mean is ${shown(r.value)} (${interval(r.low, r.high)}).` : "";
      return `Mean cosine over pairs of tokens within each of ${whole(q.uniformity.length)} sampled sequences: far right, its tokens have become alike.${told}`;
    },
    draw: (host, width) => {
      const q = own();
      if (!q) { host.replaceChildren(); return; }
      const [low, high] = minMax(q.uniformity), bins = 28;
      const from = Math.min(0, Math.floor(low * 10) / 10), to = Math.max(from + 0.2, Math.ceil(high * 10) / 10);
      const counts = new Array(bins).fill(0);
      for (const u of q.uniformity) counts[Math.min(bins - 1, Math.max(0, Math.floor(((u - from) / (to - from)) * bins)))]++;
      const f = frame(host, width, {
        height: 240, x: { domain: [from, to], label: "uniformity of the sequence" }, y: { domain: [0, Math.max(...counts) * 1.05], count: 3, label: "sequences" }, top: 20,
        label: `Histogram of the uniformity of sequences of ${layerWords()}`,
      });
      counts.forEach((count, i) => {
        const x = f.x(from + (i * (to - from)) / bins), next = f.x(from + ((i + 1) * (to - from)) / bins);
        if (count) f.svg.append(s("rect", { class: "bar-mark", x: x + 0.75, width: Math.max(1, next - x - 1.5), y: f.y(count), height: f.bottom - f.y(count), rx: 1.5 },
          s("title", {}, `${shown(from + (i * (to - from)) / bins)} to ${shown(from + ((i + 1) * (to - from)) / bins)}: ${whole(count)} sequences`)));
      });
    },
    data: () => { const q = own(); return { columns: ["length", "uniformity"], rows: Array.from(q ? q.length : [], (t, i) => [t, q.uniformity[i]]) }; },
  });
  when(["layer"], box.redraw);
  return box;
}
