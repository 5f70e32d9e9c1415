// The measures that follow from a spectrum and the mean, as isotrope.measures has them. Each is a function of a space.
const total = (values) => values.reduce((a, b) => a + b, 0);

function entropyRank(weights) {
  const sum = total(weights);
  let entropy = 0;
  for (const weight of weights) if (weight > 0) entropy -= (weight / sum) * Math.log(weight / sum);
  return Math.exp(entropy);
}

function skew(values) {
  const scaled = values.map((value) => value / values[0]), mean = total(scaled) / scaled.length;
  let second = 0, third = 0;
  for (const value of scaled) { second += (value - mean) ** 2; third += (value - mean) ** 3; }
  second /= scaled.length;
  return second <= 1e-20 ? null : third / scaled.length / second ** 1.5;
}

function middle(values) {
  const half = values.length >> 1;
  return values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

function gini(values) {
  const sum = total(values), p = values.length;
  let so = 0, area = 0;
  values.forEach((value, i) => { so += value; area += so / sum - (i + 1) / p; });
  return (area * 2) / p;
}

const weak = (values) => values.filter((value) => value < 0.05 * values[0]).length;

// Sum and sum of squares of the eigenvalues of the scatter, without the eigenvalues themselves where they are not known.
function spread(space) {
  if (space.scatter) return [total(space.scatter), squares(space.scatter)];
  const [strengths, pull] = space.part, n = space.n;
  let trace = 0, square = 0;
  strengths.forEach((value, i) => { trace += value ** 2 - n * pull[i] ** 2; square += value ** 4 - 2 * n * (value * pull[i]) ** 2; });
  return [trace, square + (n * space.mean) ** 2];
}

function eigenvalues(space) {
  if (!space.scatter) space.scatter = aboutTheMean(space.part, space.n, space.d);
  return space.scatter.subarray(0, Math.min(space.n, space.d));
}

const known = (space) => Boolean(space.scatter || space.part);

const OF_SPECTRUM = {
  effective_rank: (x) => entropyRank(x.singular),
  effective_rank_eigenvalues: (x) => (known(x) ? entropyRank(eigenvalues(x)) : null),
  isoscore: (x) => {
    if (!known(x) || x.d < 2) return null;
    const [trace, square] = spread(x);
    return Math.min(1, Math.max(0, ((trace * trace) / square - 1) / (x.d - 1)));
  },
  drift_share: (x) => (x.mean === null ? null : Math.min(1, (x.mean * x.n) / x.energy)),
  drift_norm: (x) => (x.mean === null ? null : Math.sqrt(x.mean)),
  explained_variance_1: (x) => x.singular[0] ** 2 / squares(x.singular),
  spectral_skewness: (x) => skew(x.singular),
  spectral_median: (x) => middle(x.singular) / x.singular[0],
  kept_dimensions: (x) => x.singular.length - weak(x.singular),
  vanished_dimensions: (x) => weak(x.singular),
  eee: (x) => {
    if (!known(x)) return null;
    const values = eigenvalues(x), p = values.length;
    return gini(values) - (values[0] / total(values) - 1 / p) / p;
  },
  eee_gini: (x) => (known(x) ? gini(eigenvalues(x)) : null),
  mean_squared_norm: (x) => x.energy / x.n,
  variance: (x) => (known(x) ? spread(x)[0] / x.n : null),
  rank_one_residual: (x) => (known(x) ? Math.min(1, Math.sqrt(Math.max(0, spread(x)[0]) / x.energy)) : null),
};

// The eigenvalues about the mean take d\u00b2 steps; beyond this width they wait until the slider rests.
const QUICK = 800;
const WAITING = ["effective_rank_eigenvalues", "eee", "eee_gini"];
