"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const at = { sigma: data.start[1], lambda: data.start[0] };

  // Numbers

  /** Whole numbers of 16 bits, from base64, back to values from low to high. */
  function unpacked({ low, high, base64 }) {
    const whole = new Uint16Array(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
    const step = (high - low) / (2 ** 16 - 1);
    return (start, count) => Array.from(whole.subarray(start, start + count), (v) => low + v * step);
  }

  const minus = (text) => text.replace("-", "−");
  const raised = (power) => [...String(power)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  function shown(v) {
    if (v === null || !Number.isFinite(v)) return "–";
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size >= 1e15 || size < 1e-3) {
      const [digits, power] = v.toExponential(1).split("e");
      const factor = digits.replace(".0", "") === "1" ? "" : `${minus(digits.replace(".0", ""))} × `;
      return `${factor}10${raised(Number(power))}`;
    }
    return minus(Number(v.toPrecision(3)).toLocaleString("en-US"));
  }

  /** Labels of ticks, with as many digits as tell them apart; commas from 10,000 on, as years have none. */
  function labels(ticks) {
    const size = ticks.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const step = ticks.slice(1).reduce((least, v, i) => Math.min(least, v - ticks[i]), Infinity);
    if (size >= 1e15 || !(step >= 1e-6) || ticks.length < 2) return ticks.map(shown);
    const maximumFractionDigits = Math.max(0, Math.ceil(1 - Math.log10(step)));
    return ticks.map((v) => minus(v.toLocaleString("en-US", { maximumFractionDigits, useGrouping: size >= 1e4 })));
  }

  const finite = (values) => values.filter((v) => v !== null && Number.isFinite(v));
  const lowest = (values) => finite(values).reduce((a, b) => Math.min(a, b), Infinity);
  const highest = (values) => finite(values).reduce((a, b) => Math.max(a, b), -Infinity);

  const r2 = data.loo.map((row) => row.map((v) => (v === null || !data.variance ? null : 1 - v / data.variance)));
  const best = { lambda: 0, sigma: 0, r2: -Infinity };
  r2.forEach((row, i) => row.forEach((v, j) => {
    if (v !== null && v > best.r2) Object.assign(best, { lambda: i, sigma: j, r2: v });
  }));

  // Drawing

  function add(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  /** From values to pixels. */
  function scale(low, high, start, end, log) {
    const f = log ? Math.log10 : (v) => v;
    const [a, b] = [f(low), f(high) === f(low) ? f(low) + 1 : f(high)];
    return (v) => start + ((f(v) - a) / (b - a)) * (end - start);
  }

  function linearTicks(low, high, count) {
    const rough = (high - low) / count;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 2.5, 5, 10].find((m) => m * unit >= rough);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) {
      ticks.push(Math.abs(v) < step * 1e-6 ? 0 : v);
    }
    return ticks;
  }

  function logTicks(low, high, count) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    if (b - a < 2.5) {
      const ticks = [];
      for (let e = Math.floor(a); e <= b; e++) for (const m of b - a < 1.5 ? [1, 2, 5] : [1, 3]) ticks.push(m * 10 ** e);
      return ticks.filter((v) => v >= low && v <= high);
    }
    const step = Math.max(1, Math.ceil((b - a) / count));
    const ticks = [];
    for (let e = Math.ceil(a / step) * step; e <= b; e += step) ticks.push(10 ** e);
    return ticks;
  }

  /** The place of a day on an axis of years, of which each day is one in 366. */
  function yearOf(year, month, day = 1) {
    return year + (Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / 864e5 / 366;
  }

  /** Ticks at the beginning of years or, over a short time, of months or days. */
  function yearTicks(low, high, count) {
    const span = high - low;
    const two = (v) => String(v).padStart(2, "0");
    const inside = (ticks) => ticks.filter(([v]) => v >= low && v <= high);
    const month = (i) => [Math.floor(i / 12), ((i % 12) + 12) % 12];
    const first = Math.floor(low * 12) - 1;
    const all = Array.from({ length: Math.ceil(span * 12) + 4 }, (_, i) => first + i);
    const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((m) => (span * 12) / m <= count) || 6000;
    if (span * 12 < 2) {
      const days = [1, 2, 5, 10, 20].find((d) => (span * 366) / d <= count) || 20;
      const each = Array.from({ length: 31 }, (_, i) => i + 1).filter((d) => (d - 1) % days === 0 && d + days / 2 <= 32);
      return inside(all.flatMap((i) => each.map((d) => {
        const [y, m] = month(i);
        const day = new Date(Date.UTC(y, m, d));
        return day.getUTCMonth() === m ? [yearOf(y, m, d), `${y}-${two(m + 1)}-${two(d)}`] : [NaN, ""];
      })));
    }
    return inside(all.filter((i) => i % months === 0).map((i) => {
      const [y, m] = month(i);
      return [yearOf(y, m), months < 12 ? `${y}-${two(m + 1)}` : String(y)];
    }));
  }

  const LETTER = 7.2; // mean width of a letter of 13 px
  const GAP = 8; // between labels
  const letters = (text) => LETTER * text.length;

  /** A label that fits into so many pixels. */
  function fitted(text, room) {
    const most = Math.max(3, Math.floor(room / LETTER));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }

  /** Ticks of an axis with their labels: those of numbers, or the levels of a column of texts. */
  function ticksOf(axis, count) {
    if (axis.levels) return axis.levels.map((text, i) => [i, text]);
    if (axis.years) return yearTicks(axis.low, axis.high, count);
    const ticks = axis.log ? logTicks : linearTicks;
    const label = (values) => (axis.log ? values.map(shown) : labels(values));
    const few = ticks(axis.low, axis.high, count);
    const values = few.length > 2 ? few : ticks(axis.low, axis.high, 2 * count);
    return label(values).map((text, i) => [values[i], text]);
  }

  /** An empty chart: axes, ticks and labels; returns where to draw, and the two scales. */
  function frame(id, x, y, description, { shape, right = 12 } = {}) {
    const host = byId(id);
    const width = Math.max(host.clientWidth, 200);
    const upTicks = ticksOf(y, 6);
    const left = Math.max(44, 12 + Math.max(...upTicks.map(([, text]) => letters(text)))) + (y.label ? 22 : 0);
    const box = { left, right: width - right, top: 10 };
    const inner = box.right - box.left;
    const tall = shape ? inner / shape : Math.min(Math.max(width * 0.62, 220), 320) - 52;
    box.bottom = Math.round(10 + Math.min(Math.max(tall, 170), 480));
    if (shape) box.right = Math.min(box.right, box.left + (box.bottom - box.top) * shape);
    const steep = x.levels && x.levels.some((text) => letters(text) > inner / x.levels.length);
    const below = steep ? 24 + Math.min(90, Math.max(...x.levels.map(letters)) * 0.7) - (x.label ? 0 : 14) : x.label ? 42 : 26;
    const height = box.bottom + below;
    const svg = document.createElementNS(SVG, "svg");
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description })) {
      svg.setAttribute(key, value);
    }
    const X = scale(x.low, x.high, box.left, box.right, x.log);
    const Y = scale(y.low, y.high, box.bottom, box.top, y.log);
    let few = Math.max(3, Math.round((box.right - box.left) / 75));
    const crowded = (ticks) => ticks.some(([v, text], i) => i && X(v) - X(ticks[i - 1][0]) < letters(text) + GAP);
    while (few > 2 && !x.levels && crowded(ticksOf(x, few))) few -= 1;
    let free = -Infinity; // where the next label may begin
    for (const [v, text] of ticksOf(x, few)) {
      add(svg, "line", { class: "tick", x1: X(v), x2: X(v), y1: box.bottom, y2: box.bottom + 4 });
      const wide = X(v) + letters(text) / 2 > width;
      const half = steep ? 0 : letters(text) / 2;
      if ((wide ? width - 1 - half : X(v)) - half < free) continue;
      free = X(v) + half + GAP;
      const at = steep ? { "text-anchor": "end", transform: `rotate(-40 ${X(v)} ${box.bottom + 14})` } : { "text-anchor": wide ? "end" : "middle" };
      add(svg, "text", { x: wide && !steep ? width - 1 : X(v), y: box.bottom + (steep ? 14 : 17), ...at }, steep ? fitted(text, 120) : text);
    }
    for (const [v, text] of upTicks) {
      add(svg, "line", { class: "tick", x1: box.left - 4, x2: box.left, y1: Y(v), y2: Y(v) });
      add(svg, "text", { x: box.left - 7, y: Y(v) + 4, "text-anchor": "end" }, text);
    }
    add(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, fitted(x.label || "", inner));
    if (y.label) {
      const middle = (box.top + box.bottom) / 2;
      add(svg, "text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, fitted(y.label, box.bottom - box.top));
    }
    const clip = `${id}-clip`;
    const inside = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
    add(add(svg, "clipPath", { id: clip }), "rect", inside);
    const plot = add(svg, "g", { "clip-path": `url(#${clip})` });
    add(svg, "rect", { ...inside, class: "axis", fill: "none" });
    host.replaceChildren(svg);
    return { svg, plot, X, Y, box };
  }

  function line(plot, X, Y, xs, ys, look) {
    let d = "";
    let pen = "M";
    xs.forEach((x, i) => {
      if (ys[i] === null || !Number.isFinite(ys[i])) { pen = "M"; return; }
      d += `${pen}${X(x).toFixed(1)} ${Y(ys[i]).toFixed(1)}`;
      pen = "L";
    });
    add(plot, "path", { d, class: `curve ${look}` });
  }

  /** Colours of cividis, from dark blue to yellow. */
  const STOPS = [[0, 34, 78], [42, 63, 109], [87, 93, 109], [122, 121, 120], [160, 150, 116], [206, 184, 92], [254, 232, 56]];
  function colour(share) {
    const t = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
    const i = Math.min(Math.floor(t), STOPS.length - 2);
    return `rgb(${STOPS[i].map((a, k) => Math.round(a + (t - i) * (STOPS[i + 1][k] - a))).join(",")})`;
  }

  // The charts that do not move

  const layers = {
    dots: ({ plot, X, Y }, { x, y, look }) => x.forEach((v, i) => add(plot, "circle", {
      class: look, cx: X(v).toFixed(1), cy: Y(y[i]).toFixed(1), r: look.startsWith("big") ? 5 : 2.8,
    })),
    line: ({ plot, X, Y }, { x, y, look }) => line(plot, X, Y, x, y, look),
    bars: ({ plot, X, Y, box }, { x, low, high }) => x.forEach((v, i) => add(plot, "line", {
      class: "interval", x1: X(v).toFixed(1), x2: X(v).toFixed(1),
      y1: low[i] === null ? box.bottom : Y(low[i]).toFixed(1), y2: high[i] === null ? box.top : Y(high[i]).toFixed(1),
    })),
    band: ({ plot, X, Y, box }, { x, low, high, look = "" }) => {
      const point = (v, edge) => `${X(v).toFixed(1)} ${edge.toFixed(1)}`;
      const up = x.map((v, i) => point(v, high[i] === null ? box.top : Y(high[i])));
      const down = x.map((v, i) => point(v, low[i] === null ? box.bottom : Y(low[i]))).reverse();
      add(plot, "path", { class: `band ${look}`, d: `M${[...up, ...down].join("L")}z` });
    },
    rug: ({ plot, X, box }, { x }) => x.forEach((v) => add(plot, "line", {
      class: "rug", x1: X(v).toFixed(1), x2: X(v).toFixed(1), y1: box.bottom - 6, y2: box.bottom,
    })),
    cells: ({ plot, box }, { values }, share) => {
      const [w, h] = [(box.right - box.left) / values[0].length, (box.bottom - box.top) / values.length];
      values.forEach((row, i) => row.forEach((v, j) => add(plot, "rect", {
        x: (box.left + j * w).toFixed(1), y: (box.bottom - (i + 1) * h).toFixed(1),
        width: (w + 0.6).toFixed(1), height: (h + 0.6).toFixed(1), fill: colour(share(v)),
      })));
    },
    places: ({ plot, X, Y }, { x, y, values }, share) => x.forEach((v, i) => add(plot, "circle", {
      class: "place", cx: X(v).toFixed(1), cy: Y(y[i]).toFixed(1), r: 3, style: `fill:${colour(share(values[i]))}`,
    })),
  };

  /** A scale of colours at the right of a chart. */
  function legend({ svg, box }, { low, high, label }) {
    const [x, steps] = [box.right + 14, 40];
    const h = (box.bottom - box.top) / steps;
    for (let i = 0; i < steps; i++) {
      add(svg, "rect", { x, y: box.bottom - (i + 1) * h, width: 14, height: h + 0.6, fill: colour((i + 0.5) / steps) });
    }
    const Y = scale(low, high, box.bottom, box.top);
    for (const v of linearTicks(low, high, 5)) add(svg, "text", { x: x + 19, y: Y(v) + 4 }, shown(v));
  }

  function drawChart({ id, x, y, layers: parts, alt, colours, shape }) {
    const room = colours && 40 + Math.max(...linearTicks(colours.low, colours.high, 5).map((v) => letters(shown(v))));
    const aspect = shape && ((x.high - x.low) * shape) / (y.high - y.low);
    const chart = frame(id, x, y, alt, { shape: colours && Math.min(Math.max(aspect || 1.5, 0.5), 2.5), right: colours ? room : 12 });
    const share = colours && ((v) => (v - colours.low) / (colours.high - colours.low || 1));
    for (const part of parts) layers[part.kind](chart, part, share);
    if (colours) legend(chart, colours);
  }

  const sigmaAxis = { low: data.sigmas[0], high: data.sigmas.at(-1), log: true, label: "bandwidth σ" };

  /** Curves over sigma, with the chosen bandwidth and the sliders' point. */
  function curves(id, y, rows, description) {
    const { plot, X, Y, box } = frame(id, sigmaAxis, y, description);
    const chosen = X(data.sigmas[data.start[1]]);
    add(plot, "line", { class: "rule", x1: chosen, x2: chosen, y1: box.top, y2: box.bottom });
    for (const { values, look } of rows) line(plot, X, Y, data.sigmas, values, look);
    const here = rows[0].values[at.sigma];
    if (here !== null) {
      const height = Math.min(Math.max(Y(here), box.top + 5), box.bottom - 5);
      add(plot, "circle", { class: "here", cx: X(data.sigmas[at.sigma]), cy: height, r: 6.5 });
    }
  }

  function drawNorms() {
    const norm = data.slopes[at.lambda];
    const rows = [{ values: norm, look: "c1" }];
    if (data.approximate) {
      const approximate = data.approximate[at.lambda];
      const factor = norm[data.start[1]] / approximate[data.start[1]];
      rows.push({ values: approximate.map((v) => (v === null ? null : v * factor)), look: "c2 dashed" });
    }
    const y = { low: lowest(norm) / 2, high: highest(norm) * 2, log: true };
    curves("norms", y, rows,
      `True and approximate Jacobian norm over the bandwidth; the true one is ${shown(norm[at.sigma])} here.`);
  }

  function drawLoo() {
    const low = Math.min(Math.max(lowest(r2.flat()), -0.3), best.r2 - 0.05);
    curves("loo", { low, high: Math.min(1, best.r2 + 0.08) }, [{ values: r2[at.lambda], look: "c1" }],
      `Leave-one-out R² over the bandwidth; ${shown(r2[at.lambda][at.sigma])} here.`);
  }

  function drawMml() {
    const values = data.mml[at.lambda];
    const [low, high] = [lowest(values), highest(values)];
    const room = (high - low) * 0.06 || 1;
    curves("mml", { low: low - room, high: high + room }, [{ values, look: "c1" }],
      `Minus twice the log marginal likelihood over the bandwidth; ${shown(values[at.sigma])} here.`);
  }

  /** Edges of cells whose middles lie at the given values, on a log scale. */
  function edges(values) {
    const logs = values.map(Math.log);
    const middle = logs.slice(1).map((v, i) => (v + logs[i]) / 2);
    return [2 * logs[0] - middle[0], ...middle, 2 * logs.at(-1) - middle.at(-1)].map(Math.exp);
  }

  function drawMap() {
    const [xs, ys] = [edges(data.sigmas), edges(data.lambdas)];
    const low = Math.max(lowest(r2.flat()), Math.min(0, best.r2 - 0.1));
    const label = `σ (R² ≤ ${low.toFixed(2)} dark, ${best.r2.toFixed(2)} yellow)`;
    const x = { ...sigmaAxis, low: xs[0], high: xs.at(-1), label };
    const { plot, X, Y } = frame("map", x, { low: ys[0], high: ys.at(-1), log: true },
      `Leave-one-out R² over bandwidth and ridge penalty; the best, ${shown(best.r2)}, is at bandwidth ${shown(data.sigmas[best.sigma])} and penalty ${shown(data.lambdas[best.lambda])}.`);
    r2.forEach((row, i) => row.forEach((v, j) => {
      const cell = add(plot, "rect", {
        class: "cell", x: X(xs[j]), y: Y(ys[i + 1]), width: X(xs[j + 1]) - X(xs[j]) + 0.5, height: Y(ys[i]) - Y(ys[i + 1]) + 0.5,
        fill: colour(v === null ? 0 : (v - low) / (best.r2 - low || 1)),
      });
      cell.addEventListener("click", () => move(j, i));
    }));
    const place = (i, j) => [X(data.sigmas[j]), Y(data.lambdas[i])];
    const [cx, cy] = place(data.start[0], data.start[1]);
    add(plot, "path", { class: "place", "pointer-events": "none", d: `M${cx} ${cy - 7}l7 7l-7 7l-7 -7z` });
    const [bx, by] = place(best.lambda, best.sigma);
    add(plot, "circle", { class: "place", "pointer-events": "none", cx: bx, cy: by, r: 5 });
    const [hx, hy] = place(at.lambda, at.sigma);
    for (const look of ["ring", "ring inner"]) add(plot, "circle", { class: look, "pointer-events": "none", cx: hx, cy: hy, r: 11 });
  }

  const pair = () => at.lambda * data.sigmas.length + at.sigma;
  const predictions = unpacked(data.predictions);

  function drawPredictions() {
    const m = data.observed.length;
    const predicted = predictions(pair() * m, m);
    const [low, high] = [lowest(data.observed), highest(data.observed)];
    const room = (high - low) * 0.15 || 1;
    const range = { low: low - room, high: high + room };
    const { plot, X, Y, box } = frame("predictions", { ...range, label: "predicted" }, { ...range, label: "observed" }, `Observations of ${m} rows against their leave-one-out predictions.`);
    add(plot, "line", { class: "rule", x1: X(range.low), y1: Y(range.low), x2: X(range.high), y2: Y(range.high) });
    // What lies outside is drawn on the edge.
    data.observed.forEach((v, i) => add(plot, "circle", {
      class: "dot", cx: Math.min(Math.max(X(predicted[i]), box.left + 2), box.right - 2).toFixed(1), cy: Y(v).toFixed(1), r: 3,
    }));
  }

  // The sliders

  function draw() {
    const [sigma, lambda] = [shown(data.sigmas[at.sigma]), shown(data.lambdas[at.lambda])];
    for (const [id, text] of [["sigma", sigma], ["lambda", lambda]]) {
      byId(id).value = at[id];
      byId(id).setAttribute("aria-valuetext", text);
      byId(`${id}-value`).textContent = text;
    }
    byId("r2").textContent = shown(r2[at.lambda][at.sigma]);
    byId("slope").textContent = shown(data.slopes[at.lambda][at.sigma]);
    byId("dof").textContent = shown(data.dof[at.lambda][at.sigma]);
    drawNorms();
    drawLoo();
    drawMml();
    drawMap();
    drawPredictions();
  }

  let waiting = false;
  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function move(sigma, lambda) {
    at.sigma = sigma;
    at.lambda = lambda;
    soon();
  }

  byId("sigma").max = data.sigmas.length - 1;
  byId("lambda").max = data.lambdas.length - 1;
  for (const id of ["sigma", "lambda"]) {
    byId(id).addEventListener("input", (event) => { at[id] = Number(event.target.value); soon(); });
  }
  byId("to-chosen").addEventListener("click", () => move(data.start[1], data.start[0]));
  byId("to-best").addEventListener("click", () => move(best.sigma, best.lambda));

  for (const block of document.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block.querySelector("pre"));
        button.textContent = "Selected";
      }
    });
    block.prepend(button);
  }

  let width = 0;
  const everything = () => { data.charts.forEach(drawChart); draw(); };
  const main = document.querySelector("main");
  new ResizeObserver(() => {
    if (main.clientWidth !== width) { width = main.clientWidth; requestAnimationFrame(everything); }
  }).observe(main);
  // What is folded has no width until it is opened: by hand, by a link to it, or for printing.
  const curious = byId("curious").querySelector("details");
  const unfold = () => { if (location.hash === "#curious") curious.open = true; };
  for (const link of document.querySelectorAll('a[href="#curious"]')) link.addEventListener("click", () => { curious.open = true; });
  curious.addEventListener("toggle", draw);
  addEventListener("hashchange", unfold);
  unfold();
  let folded = new Set();
  // Charts are drawn for the width of a page before it is printed, and for the window after that.
  for (const [event, printed] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      if (printed) folded = new Set(document.querySelectorAll("details:not([open])"));
      for (const part of folded) part.open = printed;
      document.body.classList.toggle("printed", printed);
      everything();
    });
  }
  everything();
})();
