// Readings by measure and layer, and what they mean.
function reading(run, measure, layer) {
  const of = run.readings[measure];
  if (!of) return null;
  return { value: of.value[layer], low: of.low[layer], high: of.high[layer], null: of.null[layer], n: of.n[layer], note: of.note[layer], reason: of.reason[layer] };
}

// In another run a layer is found by how the two runs were aligned; -1 where it has no partner there.
const layerIn = (run, at) => run.layers.findIndex((layer) => layer.label === partnerOf(run, RUNS[0].layers[at].label));

// What a layer is called in each run, where runs of different depth are paired; else in the first.
const layerNames = (at) => (DATA.alignments || []).some((a) => a.by === "depth")
  ? RUNS.map((run) => (run.layers[layerIn(run, at)] || { name: "\u2013" }).name).join(" : ")
  : RUNS[0].layers[at].name;

const GROUPS = ["moments", "tokens", "sequences", "spread", "neighbours", "quantized", "other"];
const GROUP_TITLES = { moments: "Mean and covariance", tokens: "Token types", sequences: "Sequences", spread: "Spread of the sample", neighbours: "Neighbours", quantized: "Quantized cells", other: "Other" };

function measured() {
  const names = new Set(RUNS.flatMap((run) => Object.keys(run.readings)));
  return [...names].filter((name) => RUNS.some((run) => run.readings[name] && run.readings[name].value.some((v) => v !== null)));
}

function tipLines(r, name) {
  const { says, better } = about(name);
  return [
    r.value === null ? r.reason || "no value" : `${exact(r.value)}`,
    r.value === null ? null : `${interval(r.low, r.high)}; n = ${whole(r.n)}`,
    r.null === null || r.null === undefined ? null : `Isotropic rows give ${shown(r.null)}.`,
    says && { soft: says + (better ? ` Healthier: ${better}.` : "") },
    r.note && { soft: `With care: ${r.note}.` },
  ];
}
