// What the reader has chosen. Whoever shows it is told when it changes.
const state = { layer: RUNS[0].layers.length - 1, repair: "softdecay", alpha: -0.6, form: "shifted", strength: 0.5, search: "" };
const listeners = [];

function when(names, react) { listeners.push([names, react]); }

function choose(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  Object.assign(state, changes);
  for (const [names, react] of listeners) if (names.some((name) => changed.includes(name))) react();
}

// The layer of a run that belongs to a layer of the first run, by their labels; undefined where there is none.
const alignment = (run) => (COMPARES && run !== RUNS[0] ? DATA.alignments[RUNS.indexOf(run) - 1] : null);
const partnerOf = (run, label) => (alignment(run) ? alignment(run).partners[label] : label);

// The layer that is chosen, by its label in a run.
const label = (run = RUNS[0]) => partnerOf(run, RUNS[0].layers[state.layer].label);
const layerName = (i = state.layer) => RUNS[0].layers[i].name;
// Vectors have one space and no layers to speak of.
const VECTORS = RUNS.every((run) => run.source.kind === "vectors");
const layerWords = (i = state.layer) => (VECTORS ? "the vectors" : `layer ${layerName(i)}`);
const fileName = (what) => () => [RUNS[0].name, what].join("-").replace(/[^\w.+-]+/g, "_");
const fileOfLayer = (what) => () => fileName(`layer-${label()}-${what}`)();
