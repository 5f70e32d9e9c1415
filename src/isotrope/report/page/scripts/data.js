// The page's numbers: JSON with long arrays as base64, decoded when first asked for.
const DATA = JSON.parse(document.getElementById("data").textContent);
const RUNS = DATA.runs;
const COMPARES = DATA.kind === "comparison";

const KINDS = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
const unpacked = new WeakMap();

function unpack(pack) {
  if (!pack) return null;
  if (!unpacked.has(pack)) {
    const text = atob(pack.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    unpacked.set(pack, new KINDS[pack.kind](bytes.buffer));
  }
  return unpacked.get(pack);
}

const about = (name) => DATA.measures[name] || { title: name, says: "", group: "other", better: null };
