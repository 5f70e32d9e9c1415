// Numbers as people read them, and as other programs do.
const MINUS = "\u2212";

function shown(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : MINUS + "\u221e";
  const size = Math.abs(value);
  let text;
  if (value === 0) text = "0";
  else if (size >= 1e6 || size < 1e-4) text = value.toExponential(digits - 2).replace(/\.?0+e/, "e").replace("e+", "e");
  else if (size >= 1000) text = value.toLocaleString("en", { maximumFractionDigits: 0 });
  else text = String(Number(value.toPrecision(digits)));
  return text.replace("-", MINUS);
}

const signed = (value) => (value > 0 ? "+" : "") + shown(value);
const whole = (value) => (value === null || value === undefined ? "\u2013" : value.toLocaleString("en"));
const exact = (value) => (value === null || value === undefined || Number.isNaN(value) ? "" : String(value));

function interval(low, high) {
  return low === null || high === null || low === undefined ? "no interval" : `95 % interval ${shown(low)} to ${shown(high)}`;
}

// What cannot be seen is shown by its name, so that no token is an empty cell.
const UNSEEN = { " ": "\u2423", "\n": "\u21b5", "\t": "\u21e5", "\r": "\u240d" };

function visible(name) {
  if (name === "") return "(empty)";
  return name.replace(/^[\u0120\u2581](?=.)/u, " ").replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|^ +| +$/g, (found) =>
    [...found].map((c) => UNSEEN[c] || `\u27e8U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`).join(""));
}
