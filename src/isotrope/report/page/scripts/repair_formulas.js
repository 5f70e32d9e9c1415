// What SoftDecay and whitening do to a spectrum: the same formulas as isotrope.repairs.
const FORMS = [["paper", "paper"], ["clipped", "clipped"], ["shifted", "shifted"]];
const EPSILON = 2 ** -52;

// f(x) of singular values (Yan et al. 2022, Eq. 2), before the largest is put back in its place.
function softDecay(value, alpha, form) {
  const a = -alpha;
  if (a < 1e-100) return value;
  if (form === "shifted") return Math.log1p((a * value) / (1 - a * a)) / a;
  if (form === "clipped") value = Math.max(value, a);
  return Math.log1p(a * (value - a)) / a;
}

// Why SoftDecay cannot bend these singular values, descending; null where it can.
function refusal(values, alpha, form) {
  const a = -alpha, largest = values[0], smallest = values[values.length - 1];
  if (form === "shifted") return a > 0 && a < 1 ? null : "The form \u201cshifted\u201d is for \u22121 < \u03b1 < 0.";
  if (a < 1e-100) return null;
  if (form === "paper" && a < 1) {
    const least = (a * (2 - a * a)) / (1 - a * a);
    return largest < least ? `The largest singular value is ${shown(largest)}; this \u03b1 needs at least ${shown(least)}. Try the form \u201cshifted\u201d.` : null;
  }
  if (largest <= a) return `The largest singular value is ${shown(largest)}; this \u03b1 needs more than ${shown(a)}.`;
  if (form === "paper" && smallest <= a - 1 / a) return `The smallest singular value is ${shown(smallest)}; the paper\u2019s formula needs all above ${shown(a - 1 / a)}. Try the form \u201cclipped\u201d.`;
  return null;
}

// A space by what its moments say: n rows of d columns, singular values about the origin, eigenvalues of the scatter
// about the mean, sum of the rows' squared lengths and squared length of the mean; null where it is not known.
function spaceOf(spectrum) {
  const singular = unpack(spectrum.singular), eigenvalues = unpack(spectrum.eigenvalues), n = spectrum.n;
  const along = unpack(spectrum.along);
  const scatter = Float64Array.from(eigenvalues, (value) => value * Math.max(n - 1, 1));
  return { n, d: eigenvalues.length, singular, scatter, energy: squares(singular), mean: along && squares(along), along };
}

function squares(values) {
  let sum = 0;
  for (const value of values) sum += value * value;
  return sum;
}

function bent(space, alpha, form) {
  const bar = Math.max(space.n, space.d) * EPSILON * space.singular[0];
  let rank = space.singular.length;
  while (rank > 0 && !(space.singular[rank - 1] > bar)) rank--;
  const kept = space.singular.subarray(0, rank);
  const refused = rank ? refusal(kept, alpha, form) : "There is no spectrum to bend.";
  if (refused) return { refused };
  const scale = kept[0] / softDecay(kept[0], alpha, form);
  const strengths = Float64Array.from(kept, (value) => scale * softDecay(value, alpha, form));
  const after = { n: space.n, d: space.d, singular: descending(strengths.map(Math.abs), space.singular.length), energy: squares(strengths), mean: null, scatter: null };
  if (space.along) {
    const pull = strengths.map((value, i) => (value / kept[i]) * space.along[i]);
    after.mean = squares(pull);
    after.part = [strengths, pull];
  }
  return { after, curve: strengths };
}

function whitened(space, strength) {
  const most = Math.max(space.n - 1, 1);
  if (space.n <= space.d) return { refused: `${whole(space.n)} rows of width ${whole(space.d)} are too few to whiten: there must be more rows than columns.` };
  let rank = Math.min(space.scatter.length, most);
  while (rank > 0 && !(space.scatter[rank - 1] > 0)) rank--;
  const scatter = Float64Array.from(space.scatter.subarray(0, rank), (value) => most * (value / most) ** (1 - strength));
  const singular = scatter.map(Math.sqrt);
  return { after: { n: space.n, d: rank, singular, scatter, energy: scatter.reduce((a, b) => a + b, 0), mean: 0 }, curve: singular };
}

function descending(values, length) {
  const sorted = new Float64Array(length);
  sorted.set(values);
  return sorted.sort().reverse();
}

// Eigenvalues of diag(b\u00b2) \u2212 n z z\u1d40, descending: the scatter about the mean where the rows' strengths along their singular
// directions are b and their mean is z there. Each lies between two neighbouring squares (Golub 1973), and is found by halving.
function aboutTheMean([strengths, pull], n, length) {
  const order = Array.from(strengths.keys()).sort((i, j) => Math.abs(strengths[j]) - Math.abs(strengths[i]));
  const d = Float64Array.from(order, (i) => strengths[i] ** 2), w = Float64Array.from(order, (i) => n * pull[i] ** 2);
  const k = d.length, found = new Float64Array(length);
  const lowest = Math.max(0, d[k - 1] - w.reduce((a, b) => a + b, 0));
  for (let i = 0; i < k; i++) {
    let low = i + 1 < k ? d[i + 1] : lowest, high = d[i];
    for (let step = 0; step < 60 && high - low > 1e-14 * high; step++) {
      const middle = (low + high) / 2;
      let sum = 1;
      for (let j = 0; j < k; j++) sum -= w[j] / (d[j] - middle);
      if (sum > 0) low = middle; else high = middle;
    }
    found[i] = (low + high) / 2;
  }
  return found.sort().reverse();
}

function repaired(space) {
  return state.repair === "softdecay" ? bent(space, state.alpha, state.form) : whitened(space, state.strength);
}

function repairName() {
  return state.repair === "softdecay" ? `SoftDecay, \u03b1 = ${shown(state.alpha)}, ${state.form}` : `Whitening, strength ${shown(state.strength)}`;
}
