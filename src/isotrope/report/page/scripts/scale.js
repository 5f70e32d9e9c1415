// From values to places on an axis, and the round values that are written beside it.
function linear([low, high], [from, to]) {
  const slope = (to - from) / (high - low || 1);
  const at = (value) => from + (value - low) * slope;
  at.back = (place) => low + (place - from) / slope;
  at.ticks = (count) => roundValues(low, high, count);
  at.domain = [low, high];
  return at;
}

function logarithmic([low, high], [from, to]) {
  const inner = linear([Math.log10(low), Math.log10(high)], [from, to]);
  const at = (value) => inner(Math.log10(Math.max(value, Number.MIN_VALUE)));
  at.back = (place) => 10 ** inner.back(place);
  at.ticks = (count) => powers(low, high, count);
  at.domain = [low, high];
  return at;
}

function roundValues(low, high, count = 5) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0)) return [low];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * size).find((k) => k >= rough * 0.999);
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) values.push(Number((i * step).toPrecision(12)));
  return values;
}

function powers(low, high, count = 5) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) return roundValues(low, high, count).filter((value) => value > 0);
  const step = Math.max(1, Math.ceil((last - first) / count));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
}

// The span of values with a little air around it; a floor or a ceiling that is nearly reached is shown.
function span(values, { air = 0.06, floor = null, ceiling = null } = {}) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { if (value < low) low = value; if (value > high) high = value; }
  if (low > high) return [0, 1];
  const width = high - low || Math.abs(high) || 1;
  low -= air * width;
  high += air * width;
  if (floor !== null && (low < floor || low - floor < width * 0.6)) low = floor;
  if (ceiling !== null && high > ceiling) high = ceiling;
  return [low, high];
}

// Perceptually even and safe for the colour-blind (cividis, Nuñez, Anderton and Renslow 2018), dark to light.
const CIVIDIS = [[0, 34, 78], [48, 70, 108], [86, 92, 108], [124, 123, 120], [166, 157, 117], [211, 193, 100], [254, 232, 56]];

function ramp(share) {
  const dark = isDark();
  const t = Math.min(1, Math.max(0, dark ? 0.18 + 0.82 * share : 0.92 * share)) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(t)), rest = t - i;
  return `rgb(${CIVIDIS[i].map((c, k) => Math.round(c + (CIVIDIS[i + 1][k] - c) * rest)).join(",")})`;
}
