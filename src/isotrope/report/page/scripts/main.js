// The sections in order, the layer that is chosen, and the way about the page.
function layerSection() {
  const run = RUNS[0], count = run.layers.length;
  const title = h("h2", { id: "layer-title" }, count > 1 ? "One layer" : VECTORS ? "The vectors" : "The space");
  const head = h("div", { class: "head sticks" }, title);
  if (count > 1) {
    const chosen = h("select", { "aria-label": "Layer", onchange: (event) => choose({ layer: Number(event.target.value) }) }, run.layers.map((_, i) => h("option", { value: i }, `Layer ${layerNames(i)}`)));
    const step = (text, by, words) => h("button", { type: "button", "aria-label": words, onclick: () => choose({ layer: Math.min(count - 1, Math.max(0, state.layer + by)) }) }, text);
    const [back, next] = [step("\u2190", -1, "Layer before"), step("\u2192", 1, "Next layer")];
    const show = () => { chosen.value = state.layer; back.disabled = state.layer === 0; next.disabled = state.layer === count - 1; };
    when(["layer"], show);
    show();
    head.append(h("div", { class: "segments no-print", style: { border: 0, background: "none" } }, back, chosen, next));
    const printed = h("p", { class: "note only-print", id: "layer-now" });
    const say = () => { printed.textContent = COMPARES ? `layer ${layerName()} of each run` : `layer ${layerName()}`; };
    when(["layer"], say);
    say();
    head.append(printed);
  }
  const rest = COMPARES
    ? [h("div", { class: "pair apart" }, RUNS.map((r) => mapPart(r)))]
    : [mapPart(run), h("div", { class: "grid" }, [normVariancePart(run), coordinatesPart(run), sequencesPart(run)]), tokenless(run), groupsPart(run), readingsPanel()];
  return h("section", { class: "section", id: "layer", "aria-labelledby": "layer-title" }, head, h("div", { class: "stack" }, spectrumPart(), ...rest.filter(Boolean)));
}

function tokenless(run) {
  if (VECTORS) return null;
  const missing = [!run.tokens && "norm against variance by token type", !Object.keys(run.sequences).length && "uniformity of single sequences"].filter(Boolean);
  return missing.length ? h("p", { class: "note" }, `Left out, because these rows are not tokens in sequences: ${missing.join(" and ")}.`) : null;
}

function navigate(sections) {
  const nav = document.getElementById("nav");
  const links = sections.map((part) => h("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  nav.append(...links);
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) links.forEach((link) => (link.hash === `#${entry.target.id}` ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  }, { rootMargin: "-30% 0px -60% 0px" });
  sections.forEach((part) => seen.observe(part));
}

startTheme();
const sections = [layersSection(), shiftSection(), changesSection(), COMPARES ? null : rowsSection(), layerSection(), COMPARES ? null : tokensSection(), acrossSection(), quantizedSection(), adviceSection(), provenanceSection()].filter(Boolean);
document.getElementById("sections").append(...sections);
navigate(sections);
document.documentElement.dataset.ready = "true";
