// The spectrum of the chosen layer, and what SoftDecay or whitening of any strength would make of it, as the slider moves.
const spaces = new Map();

function space(run) {
  const key = `${RUNS.indexOf(run)}/${label(run)}`;
  if (!spaces.has(key)) spaces.set(key, run.spectra[label(run)] ? spaceOf(run.spectra[label(run)]) : null);
  const found = spaces.get(key);
  return found && found.singular.length && found.singular[0] > 0 ? found : null;
}

const SETTINGS = ["repair", "alpha", "form", "strength"];
const shares = (values) => Array.from(values, (value) => value / values[0]);

function spectrumPart() {
  if (!RUNS.some((run) => Object.keys(run.spectra).length)) return h("p", { class: "note" }, "The run folder holds no spectra.");
  let log = true;
  const refused = h("p", { class: "refusal", role: "status" });
  const strength = panel({
    title: "Strength of each direction", name: fileOfLayer("spectrum"), data: spectrumRows,
    text: "Singular values of the rows over the largest, strongest first. A flat line is an isotropic space; a cliff is a collapsed one.",
    draw: (host, width) => drawStrength(host, width, log),
  });
  const cumulative = panel({
    title: "How many directions are weak", name: fileOfLayer("cdf"), data: cdfRows,
    text: () => "Share of directions no stronger than x. The further the curve bends into the upper left corner, the more directions have vanished."
      + (RUNS.some((run) => run.curves[label(run)]) && !COMPARES ? " Dotted: the mean over single sequences." : ""),
    draw: drawCdf,
  });
  const after = h("div");
  const redraw = (resting) => {
    refused.textContent = RUNS.map((run) => space(run) && repaired(space(run)).refused).find(Boolean) || "";
    strength.redraw();
    cumulative.redraw();
    after.replaceChildren(...afterTables(resting));
  };
  when([...SETTINGS, "layer"], () => redraw(false));
  const controls = repairControls(() => redraw(true), (on) => { log = on; strength.redraw(); });
  redraw(true);
  return h("div", { class: "stack", id: "spectrum" }, controls, refused, h("div", { class: "pair" }, strength, cumulative), after);
}

// The curves that are drawn: of each run as it is and repaired.
function curves() {
  return RUNS.flatMap((run, i) => {
    const before = space(run);
    if (!before) return [];
    const { after } = repaired(before);
    const stroke = COMPARES ? `var(${runColor(i)})` : null;
    return [{ run, values: shares(before.singular), kind: "before", stroke }, ...(after ? [{ run, values: shares(after.singular), kind: "after", stroke }] : [])];
  });
}

function drawStrength(host, width, log) {
  const drawn = curves();
  const most = Math.max(2, ...drawn.map((c) => c.values.length));
  // The last few values may be rounding: they leave through the floor instead of stretching the axis.
  const weakest = drawn.map((c) => c.values[Math.floor(0.98 * (c.values.length - 1))]).filter((v) => v > 0);
  const least = Math.max(1e-6, Math.min(0.1, ...weakest) / 1.5);
  const f = frame(host, width, {
    height: 270, x: { domain: [1, most], log: false, label: "direction, by rank", ticks: [1, ...roundValues(0, most, Math.floor(width / 100)).slice(1)] },
    y: log ? { domain: [least, 1], log: true, count: 4 } : { domain: [0, 1], count: 4 },
    label: `Singular values of ${layerWords()}, as they are and after ${repairName()}`,
  });
  for (const c of drawn) f.svg.append(s("path", { class: `line ${c.kind}`, "data-run": RUNS.indexOf(c.run), vars: c.stroke ? { "--stroke": c.stroke } : {}, opacity: COMPARES && c.kind === "before" ? 0.45 : 1, d: path(c.values.map((v, i) => [f.x(i + 1), v > 0 || !log ? f.y(log ? Math.max(v, least) : v) : NaN])) }));
  f.svg.append(s("line", { class: "cross", y1: f.top, y2: f.bottom, hidden: true }));
  curveLegend(host);
  follow(f, width, (x) => {
    const i = Math.min(most, Math.max(1, Math.round(x)));
    return [i, `Direction ${whole(i)} of ${whole(most)}`, drawn.map((c) => `${curveName(c)}: ${shown(c.values[i - 1], 6)} of the strongest`)];
  });
}

function drawCdf(host, width) {
  const drawn = curves();
  const f = frame(host, width, {
    height: 270, x: { domain: [0, 1], label: "strength, of the strongest" }, y: { domain: [0, 1], count: 4 },
    label: `Cumulative share of directions of ${layerWords()}, as they are and after ${repairName()}`,
  });
  const steps = (values) => {
    const up = [...values].reverse(), points = [[f.x(0), f.y(0)]];
    up.forEach((v, i) => points.push([f.x(v), f.y(i / up.length)], [f.x(v), f.y((i + 1) / up.length)]));
    return points;
  };
  const own = RUNS.length === 1 && RUNS[0].curves[label()];
  if (own) {
    const x = unpack(own.x), y = unpack(own.y);
    f.svg.append(s("path", { class: "null", fill: "none", d: path(Array.from(x, (v, i) => [f.x(v), f.y(y[i])])) }));
  }
  for (const c of drawn) f.svg.append(s("path", { class: `line ${c.kind}`, vars: c.stroke ? { "--stroke": c.stroke } : {}, opacity: COMPARES && c.kind === "before" ? 0.45 : 1, d: path(steps(c.values)) }));
  f.svg.append(s("line", { class: "cross", y1: f.top, y2: f.bottom, hidden: true }));
  curveLegend(host);
  follow(f, width, (x) => {
    const at = Math.min(1, Math.max(0, x));
    return [at, `Strength ${shown(at, 3)} of the strongest`, drawn.map((c) => `${curveName(c)}: ${shown((100 * c.values.filter((v) => v <= at).length) / c.values.length, 4)} % of directions at or below`)];
  });
}

const curveName = (c) => [COMPARES ? c.run.name : "", c.kind === "before" ? "as it is" : "repaired"].filter(Boolean).join(", ");

function curveLegend(host) {
  if (COMPARES) { host.append(runLegend()); return; }
  const entry = (text, paint) => h("li", {}, h("i", { class: "swatch stroke", style: { background: paint } }), h("span", {}, text));
  host.append(h("ul", { class: "legend" }, entry("as it is", "var(--before)"), entry(repairName(), "var(--accent)")));
}

// A crosshair that says what lies under it.
function follow(f, width, tell) {
  const line = f.svg.querySelector(".cross");
  f.svg.addEventListener("pointermove", (event) => {
    const box = f.svg.getBoundingClientRect();
    const [at, title, lines] = tell(f.x.back(((event.clientX - box.left) * width) / box.width));
    line.removeAttribute("hidden");
    line.setAttribute("x1", f.x(at));
    line.setAttribute("x2", f.x(at));
    showTip(event.clientX, event.clientY, title, lines);
  });
  f.svg.addEventListener("pointerleave", () => { line.setAttribute("hidden", ""); hideTip(); });
}

function spectrumRows() {
  const rows = RUNS.flatMap((run) => {
    const before = space(run);
    if (!before) return [];
    const { curve } = repaired(before);
    return Array.from(before.singular, (value, i) => [...(COMPARES ? [run.name] : []), i + 1, value, curve && i < curve.length ? curve[i] : 0]);
  });
  return { columns: [...(COMPARES ? ["run"] : []), "direction", "singular_value", "repaired"], rows };
}

function cdfRows() {
  const rows = curves().flatMap((c) => [...c.values].reverse().map((v, i) => [...(COMPARES ? [c.run.name] : []), c.kind, v, (i + 1) / c.values.length]));
  return { columns: [...(COMPARES ? ["run"] : []), "which", "strength", "share_at_or_below"], rows };
}

// What the repair makes of the measures: exactly where the spectrum tells it, at the nearest settings tried where rows do.
function afterTables(resting) {
  return RUNS.flatMap((run) => {
    const before = space(run);
    if (!before) return [];
    const { after } = repaired(before);
    const wait = !resting && before.d > QUICK && state.repair === "softdecay";
    const rows = Object.entries(OF_SPECTRUM).map(([name, of]) => {
      const waits = wait && WAITING.includes(name);
      const old = of(before), now = after && !waits ? of(after) : null;
      return { name, old, now, waits };
    }).filter((row) => row.old !== null);
    const title = COMPARES ? `What ${repairName()} makes of ${run.name}` : `What ${repairName()} makes of it`;
    return [h("div", { class: "stack apart" }, repairingPanel(run), h("div", { class: "pair wide-first" }, afterTable(title, rows), triedTable(run)))];
  });
}

// Whether this space should be repaired, as far as that is known, and the commands that find out.
function repairingPanel(run) {
  const { title, text, commands } = run.repairing;
  return h("figure", { class: "panel repairing", "aria-label": "Should it be repaired?" },
    h("header", {}, h("h3", {}, COMPARES ? `${run.name}: ${title}` : title)),
    text.map((sentence) => h("p", { class: "about" }, sentence)),
    h("dl", { class: "commands" }, commands.map(({ what, command }) => [h("dt", {}, what), h("dd", {}, h("code", {}, command))])));
}

// No colours and no praise: which way a number moves is no evidence that a task gains.
function afterTable(title, rows) {
  const line = ({ name, old, now, waits }) => {
    const change = now === null || old === null ? null : now - old;
    const real = change !== null && Math.abs(change) > 1e-9 * Math.max(Math.abs(old), Math.abs(now));
    return h("tr", { "data-measure": name },
      h("td", { title: about(name).says }, about(name).title),
      h("td", { class: "number", "data-value": exact(old) }, shown(old)),
      h("td", { class: "number", "data-value": exact(now) }, waits ? "\u2026" : shown(now)),
      h("td", { class: "number soft" }, real ? signed(change) : ""));
  };
  return h("figure", { class: "panel", "aria-label": title }, h("header", {}, h("h3", {}, title)),
    h("p", { class: "about" }, "Worked out in this page from the spectrum and the mean, exactly for all rows, as the slider moves."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", { class: "after" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Measure"), ["As it is", "Repaired", "Change"].map((t) => h("th", { scope: "col", class: "number" }, t)))),
      h("tbody", {}, rows.map(line)))),
    h("div", { class: "tools" }, h("button", { class: "quiet", type: "button", "aria-label": `${title}: download CSV`, onclick: () => saveCsv(fileOfLayer("repaired")(), { columns: ["measure", "as_it_is", "repaired"], rows: rows.map((r) => [r.name, r.old, r.now]) }) }, "CSV")));
}

function triedTable(run) {
  const own = run.tried.filter((line) => line.layer === label(run));
  const heading = h("header", {}, h("h3", {}, "Measures that need rows"));
  if (!own.length) {
    const there = [...new Set(run.tried.map((line) => line.layer))];
    const words = there.length ? `What needs each row\u2019s new length was tried in layers ${there.join(", ")} only.` : "No rows were kept to try a repair on.";
    return h("figure", { class: "panel" }, heading, h("p", { class: "about" }, words));
  }
  const names = [...new Set(own.map((line) => line.measure).filter(Boolean))];
  const key = (line) => [line.repair, line.alpha, line.strength].join();
  const kinds = [...new Map(own.map((line) => [key(line), line])).values()];
  const called = (line) => ({ softdecay: `SoftDecay ${shown(line.alpha)}`, whitening: `Whitening ${shown(line.strength)}`, centering: "Centering", "all-but-the-top": "All but the top" }[line.repair] || line.repair);
  const value = (line, name) => (own.find((other) => key(other) === key(line) && other.measure === name) || {}).after;
  const near = nearestTried(kinds);
  const rounded = own.some((line) => line.kept_float16 != null) ? [["kept_float16", "float16 queries"], ["kept_int8", "int8 queries"]] : [];
  const kept = (line, name) => (line[name] == null ? "" : `${(100 * line[name]).toFixed(1)} %`);
  const risks = kinds.filter((line) => line.risks).map((line) => h("p", { class: "about" }, `${called(line)}: ${line.risks}`));
  const first = own.find((line) => line.measure) || {};
  return h("figure", { class: "panel", "aria-label": "Measures that need rows" }, heading,
    h("p", { class: "about" }, `Tried on ${whole(first.n)} sampled rows at these settings; the nearest to the slider is marked.`),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measures that need rows, by setting" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Repair"), names.map((name) => h("th", { scope: "col", class: "number", title: about(name).says }, about(name).title)), rounded.map(([, title]) => h("th", { scope: "col", class: "number", title: "Share of the ten nearest rows, by cosine after the repair, that queries keep when they are rounded before it." }, title)))),
      h("tbody", {},
        h("tr", {}, h("td", {}, "As it is"), names.map((name) => h("td", { class: "number" }, shown((own.find((line) => line.measure === name) || {}).before))), rounded.map(() => h("td", {}, ""))),
        kinds.map((line) => h("tr", { class: line === near ? "hit" : null }, h("td", { class: "name" }, called(line)),
          line.measure ? names.map((name) => h("td", { class: "number" }, shown(value(line, name)))) : h("td", { class: "words", colspan: names.length }, line.reason), rounded.map(([name]) => h("td", { class: "number" }, kept(line, name)))))))),
    risks,
    h("div", { class: "tools" }, h("button", { class: "quiet", type: "button", "aria-label": "Measures that need rows: download CSV", onclick: () => saveCsv(fileOfLayer("tried")(), { columns: Object.keys(own[0]), rows: own.map((line) => Object.values(line)) }) }, "CSV")));
}

function nearestTried(kinds) {
  const [parameter, value] = state.repair === "softdecay" ? ["alpha", state.alpha] : ["strength", state.strength];
  const same = kinds.filter((line) => line.repair === state.repair);
  return same.sort((a, b) => Math.abs(a[parameter] - value) - Math.abs(b[parameter] - value))[0];
}
