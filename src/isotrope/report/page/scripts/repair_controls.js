// The controls of a repair: its kind, SoftDecay's alpha and form, the strength of whitening.
function repairControls(rest, setLog) {
  const alpha = slider("\u03b1, how strongly SoftDecay bends", "alpha", -2, 0, 0.01, rest);
  const form = select("Form", FORMS, state.form, (value) => { choose({ form: value }); rest(); });
  const strength = slider("Strength: 0 only centres, 1 makes all directions alike", "strength", 0, 1, 0.01, rest);
  const show = () => { alpha.hidden = form.hidden = state.repair !== "softdecay"; strength.hidden = state.repair !== "whitening"; };
  const kind = segments("Repair", [["softdecay", "SoftDecay"], ["whitening", "Whitening"]], state.repair, (value) => { choose({ repair: value }); show(); rest(); });
  show();
  return h("div", { class: "controls" }, kind, alpha, form, strength, check("Logarithmic", true, setLog));
}

function slider(words, name, min, max, step, rest) {
  const range = h("input", { type: "range", min, max, step, value: state[name], id: name, "aria-label": words });
  const number = h("input", { type: "number", min, max, step: "any", value: state[name], "aria-label": `${words}, exactly` });
  const set = (text, from) => {
    const value = Math.min(max, Math.max(min, Number(text)));
    if (text === "" || Number.isNaN(value)) return;
    if (from !== range) range.value = value;
    if (from !== number) number.value = value;
    choose({ [name]: value });
  };
  range.addEventListener("input", () => set(range.value, range));
  number.addEventListener("input", () => set(number.value, number));
  for (const input of [range, number]) input.addEventListener("change", rest);
  return h("div", { class: "field grow" }, words, h("div", { class: "slider" }, range, number));
}
