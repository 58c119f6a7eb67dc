// The page: charts of its data, sliders, buttons to copy code, printing.

const data = JSON.parse(byId("data").textContent);
const [startLambda, startSigma] = data.start;
const at = { sigma: startSigma, lambda: startLambda };

const finite = (values) => values.filter((v) => v !== null && Number.isFinite(v));
const lowest = (values) => finite(values).reduce((a, b) => Math.min(a, b), Infinity);
const highest = (values) => finite(values).reduce((a, b) => Math.max(a, b), -Infinity);

const r2 = data.loo.map((row) => row.map((v) => (v === null || !data.variance ? null : 1 - v / data.variance)));
const best = { lambda: 0, sigma: 0, r2: -Infinity };
r2.forEach((row, i) => row.forEach((v, j) => {
  if (v !== null && v > best.r2) Object.assign(best, { lambda: i, sigma: j, r2: v });
}));

/** Function that returns some of the values that are packed as 16-bit integers in base64. */
function unpacked({ low, high, base64 }) {
  const whole = new Uint16Array(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
  const step = (high - low) / (2 ** 16 - 1);
  return (start, count) => Array.from(whole.subarray(start, start + count), (v) => low + v * step);
}
const predictions = unpacked(data.predictions);

// Charts that follow the sliders

const sigmaAxis = { low: data.sigmas[0], high: data.sigmas.at(-1), log: true, label: "bandwidth σ" };

/** Draw curves over sigma, a line at the chosen bandwidth, and a dot where the sliders are. */
function drawCurves(id, y, curves, alt) {
  const chosen = data.sigmas[startSigma];
  const here = curves[0].y[at.sigma];
  drawChart({ id, x: sigmaAxis, y, alt, layers: [
    { kind: "line", look: "rule thin", x: [chosen, chosen], y: [y.low, y.high] },
    ...curves.map((curve) => ({ kind: "line", x: data.sigmas, ...curve })),
    ...(here === null ? [] : [{ kind: "dots", look: "here", x: [data.sigmas[at.sigma]], y: [here] }]),
  ] });
}

function drawNorms() {
  const norm = data.slopes[at.lambda];
  const curves = [{ y: norm, look: "c1" }];
  if (data.approximate) {
    const approximate = data.approximate[at.lambda];
    const factor = norm[startSigma] / approximate[startSigma];
    curves.push({ y: approximate.map((v) => (v === null ? null : v * factor)), look: "c2 dashed" });
  }
  drawCurves("norms", { low: lowest(norm) / 2, high: highest(norm) * 2, log: true }, curves,
    `True and approximate Jacobian norm over the bandwidth; the true one is ${shown(norm[at.sigma])} here.`);
}

function drawLoo() {
  const low = clamp(lowest(r2.flat()), -0.3, best.r2 - 0.05);
  drawCurves("loo", { low, high: Math.min(1, best.r2 + 0.08) }, [{ y: r2[at.lambda], look: "c1" }],
    `Leave-one-out R² over the bandwidth; ${shown(r2[at.lambda][at.sigma])} here.`);
}

function drawMml() {
  const values = data.mml[at.lambda];
  const [low, high] = [lowest(values), highest(values)];
  const room = (high - low) * 0.06 || 1;
  drawCurves("mml", { low: low - room, high: high + room }, [{ y: values, look: "c1" }],
    `Minus twice the log marginal likelihood over the bandwidth; ${shown(values[at.sigma])} here.`);
}

/** Edges of cells whose middles are the given values, on a log scale. */
function logEdges(values) {
  const logs = values.map(Math.log);
  const middle = logs.slice(1).map((v, i) => (v + logs[i]) / 2);
  return [2 * logs[0] - middle[0], ...middle, 2 * logs.at(-1) - middle.at(-1)].map(Math.exp);
}

function drawMap() {
  const [xs, ys] = [logEdges(data.sigmas), logEdges(data.lambdas)];
  const low = Math.max(lowest(r2.flat()), Math.min(0, best.r2 - 0.1));
  const values = r2.map((row) => row.map((v) => (v === null ? low : v)));
  const point = (look, { sigma, lambda }, kind = "dots") => ({ kind, look, x: [data.sigmas[sigma]], y: [data.lambdas[lambda]] });
  drawChart({
    id: "map",
    x: { ...sigmaAxis, low: xs[0], high: xs.at(-1), label: `σ (R² ≤ ${low.toFixed(2)} dark, ${best.r2.toFixed(2)} yellow)` },
    y: { low: ys[0], high: ys.at(-1), log: true },
    alt: `Leave-one-out R² over bandwidth and ridge penalty; the best, ${shown(best.r2)}, is at bandwidth `
      + `${shown(data.sigmas[best.sigma])} and penalty ${shown(data.lambdas[best.lambda])}.`,
    layers: [
      { kind: "cells", look: "cell", x: xs, y: ys, values, colours: { low, high: best.r2 } },
      point("place", { sigma: startSigma, lambda: startLambda }, "diamonds"),
      point("big place", best),
      point("ring", at),
      point("ring inner", at),
    ],
  });
}

function drawPredictions() {
  const m = data.observed.length;
  const predicted = predictions((at.lambda * data.sigmas.length + at.sigma) * m, m);
  const [low, high] = [lowest(data.observed), highest(data.observed)];
  const room = (high - low) * 0.15 || 1;
  const range = { low: low - room, high: high + room };
  const ends = [range.low, range.high];
  drawChart({
    id: "predictions",
    x: { ...range, label: "predicted" },
    y: { ...range, label: "observed" },
    alt: `Observations of ${m} rows against their leave-one-out predictions.`,
    layers: [
      { kind: "line", look: "rule thin", x: ends, y: ends },
      { kind: "dots", look: "dot", x: predicted, y: data.observed },
    ],
  });
}

// Sliders

function draw() {
  for (const [id, values] of [["sigma", data.sigmas], ["lambda", data.lambdas]]) {
    const text = shown(values[at[id]]);
    byId(id).value = at[id];
    byId(id).setAttribute("aria-valuetext", text);
    byId(`${id}-value`).textContent = text;
  }
  for (const [id, values] of [["r2", r2], ["slope", data.slopes], ["dof", data.dof]]) {
    byId(id).textContent = shown(values[at.lambda][at.sigma]);
  }
  drawNorms();
  drawLoo();
  drawMml();
  drawMap();
  drawPredictions();
}

let waiting = false;
function move(to) {
  Object.assign(at, to);
  if (!waiting) requestAnimationFrame(() => { waiting = false; draw(); });
  waiting = true;
}

byId("sigma").max = data.sigmas.length - 1;
byId("lambda").max = data.lambdas.length - 1;
for (const id of ["sigma", "lambda"]) {
  byId(id).addEventListener("input", (event) => move({ [id]: Number(event.target.value) }));
}
byId("to-chosen").addEventListener("click", () => move({ sigma: startSigma, lambda: startLambda }));
byId("to-best").addEventListener("click", () => move({ sigma: best.sigma, lambda: best.lambda }));
byId("map").addEventListener("click", (event) => {
  const cell = [...byId("map").querySelectorAll(".cell")].indexOf(event.target);
  const columns = data.sigmas.length;
  if (cell >= 0) move({ sigma: cell % columns, lambda: Math.floor(cell / columns) });
});

// Buttons that copy code

for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const pre = block.querySelector("pre");
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
  });
  block.prepend(button);
}

// Drawing for the window, and for printing

let width = 0;
const drawAll = () => { data.charts.forEach(drawChart); draw(); };
const main = document.querySelector("main");
new ResizeObserver(() => {
  if (main.clientWidth !== width) { width = main.clientWidth; requestAnimationFrame(drawAll); }
}).observe(main);
// Charts in a folded section have no width until it is opened: by hand, by a link, or for printing.
const curious = byId("curious").querySelector("details");
const unfold = () => { if (location.hash === "#curious") curious.open = true; };
for (const link of document.querySelectorAll('a[href="#curious"]')) link.addEventListener("click", () => { curious.open = true; });
curious.addEventListener("toggle", draw);
addEventListener("hashchange", unfold);
unfold();
let folded = [];
for (const [event, printed] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    if (printed) folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = printed;
    document.body.classList.toggle("printed", printed);
    drawAll();
  });
}
drawAll();
