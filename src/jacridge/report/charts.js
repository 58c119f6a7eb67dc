// Charts from plain values: two axes, layers, and a scale of colours.

const SVG = "http://www.w3.org/2000/svg";
const LETTER = 7.2; // mean width of a letter of 13 px
const GAP = 8; // between labels

const byId = (id) => document.getElementById(id);
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const letters = (text) => LETTER * text.length;

function add(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// Numbers as text

const minus = (text) => text.replace("-", "−");
const raised = (power) => [...String(power)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

function shown(v) {
  if (v === null || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e15 || size < 1e-3) {
    const [digits, power] = v.toExponential(1).replace(".0", "").split("e");
    return `${digits === "1" ? "" : `${minus(digits)} × `}10${raised(Number(power))}`;
  }
  return minus(Number(v.toPrecision(3)).toLocaleString("en-US"));
}

/** Labels of ticks with as many digits as tell them apart; commas only from 10,000 on, because of years. */
function labels(ticks) {
  const size = ticks.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  const step = ticks.slice(1).reduce((least, v, i) => Math.min(least, v - ticks[i]), Infinity);
  if (size >= 1e15 || !(step >= 1e-6) || ticks.length < 2) return ticks.map(shown);
  const maximumFractionDigits = Math.max(0, Math.ceil(1 - Math.log10(step)));
  return ticks.map((v) => minus(v.toLocaleString("en-US", { maximumFractionDigits, useGrouping: size >= 1e4 })));
}

/** The text, cut off if it is wider than the given number of pixels. */
function fitted(text, room) {
  const most = Math.max(3, Math.floor(room / LETTER));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// Scales and ticks

/** Function from values to pixels. */
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
  const span = b - a;
  const factors = span < 1.5 ? [1, 2, 5] : span < 2.5 ? [1, 3] : [1];
  const step = span < 2.5 ? 1 : Math.max(1, Math.ceil(span / count));
  const ticks = [];
  for (let e = Math.floor(a / step) * step; e <= b; e += step) ticks.push(...factors.map((m) => m * 10 ** e));
  return ticks.filter((v) => v >= low && v <= high);
}

/** Position of a day on an axis of years: each day is 1/366 of a year. */
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

/** Ticks of an axis with their labels: numbers, times, or the levels of a column of texts. */
function ticksOf(axis, count) {
  if (axis.levels) return axis.levels.map((text, i) => [i, text]);
  if (axis.years) return yearTicks(axis.low, axis.high, count);
  const ticks = axis.log ? logTicks : linearTicks;
  const few = ticks(axis.low, axis.high, count);
  const values = few.length > 2 ? few : ticks(axis.low, axis.high, 2 * count);
  const texts = axis.log ? values.map(shown) : labels(values);
  return values.map((v, i) => [v, texts[i]]);
}

// Axes

/** The rectangle between the axes; `shape` is its width divided by its height, if that matters. */
function boxOf(width, upTicks, y, { shape, right = 12 }) {
  const left = Math.max(44, 12 + Math.max(...upTicks.map(([, text]) => letters(text)))) + (y.label ? 22 : 0);
  const inner = width - right - left;
  const tall = shape ? inner / shape : clamp(width * 0.62, 220, 320) - 52;
  const bottom = Math.round(10 + clamp(tall, 170, 480));
  return { left, top: 10, bottom, right: shape ? Math.min(width - right, left + (bottom - 10) * shape) : width - right };
}

/** Draw ticks and labels below a chart; labels that do not fit are left out. */
function drawTicks(svg, x, X, box, width, steep) {
  let count = Math.max(3, Math.round((box.right - box.left) / 75));
  const crowded = (ticks) => ticks.some(([v, text], i) => i && X(v) - X(ticks[i - 1][0]) < letters(text) + GAP);
  while (count > 2 && !x.levels && crowded(ticksOf(x, count))) count -= 1;
  let free = -Infinity; // where the next label may begin
  for (const [v, text] of ticksOf(x, count)) {
    add(svg, "line", { class: "tick", x1: X(v), x2: X(v), y1: box.bottom, y2: box.bottom + 4 });
    const half = steep ? 0 : letters(text) / 2;
    const wide = X(v) + letters(text) / 2 > width; // then it ends at the right of the chart
    if ((wide ? width - 1 - half : X(v)) - half < free) continue;
    free = X(v) + half + (x.levels && !steep ? 0 : GAP); // level labels are steep unless they fit
    if (steep) {
      const turn = `rotate(-40 ${X(v)} ${box.bottom + 14})`;
      add(svg, "text", { x: X(v), y: box.bottom + 14, "text-anchor": "end", transform: turn }, fitted(text, 120));
    } else {
      add(svg, "text", { x: wide ? width - 1 : X(v), y: box.bottom + 17, "text-anchor": wide ? "end" : "middle" }, text);
    }
  }
}

/** Draw an empty chart: axes, ticks and labels. Return where to draw, and the two scales. */
function frame(id, x, y, alt, room) {
  const width = Math.max(byId(id).clientWidth, 200);
  const upTicks = ticksOf(y, 6);
  const box = boxOf(width, upTicks, y, room);
  const inside = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
  const steep = x.levels && x.levels.some((text) => letters(text) > inside.width / x.levels.length);
  const turned = steep && 24 + Math.min(90, Math.max(...x.levels.map(letters)) * 0.7) - (x.label ? 0 : 14);
  const height = box.bottom + (turned || (x.label ? 42 : 26));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", alt);
  const X = scale(x.low, x.high, box.left, box.right, x.log);
  const Y = scale(y.low, y.high, box.bottom, box.top, y.log);
  drawTicks(svg, x, X, box, width, steep);
  for (const [v, text] of upTicks) {
    add(svg, "line", { class: "tick", x1: box.left - 4, x2: box.left, y1: Y(v), y2: Y(v) });
    add(svg, "text", { x: box.left - 7, y: Y(v) + 4, "text-anchor": "end" }, text);
  }
  add(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, fitted(x.label || "", inside.width));
  if (y.label) {
    const middle = (box.top + box.bottom) / 2;
    add(svg, "text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, fitted(y.label, inside.height));
  }
  add(add(svg, "clipPath", { id: `${id}-clip` }), "rect", inside);
  const plot = add(svg, "g", { "clip-path": `url(#${id}-clip)` });
  add(svg, "rect", { ...inside, class: "axis", fill: "none" });
  byId(id).replaceChildren(svg);
  return { svg, plot, X, Y, box };
}

// Layers

/** Colours of cividis, from dark blue to yellow. */
const STOPS = [[0, 34, 78], [42, 63, 109], [87, 93, 109], [122, 121, 120], [160, 150, 116], [206, 184, 92], [254, 232, 56]];
function colour(share) {
  const t = clamp(share, 0, 1) * (STOPS.length - 1);
  const i = Math.min(Math.floor(t), STOPS.length - 2);
  return `rgb(${STOPS[i].map((a, k) => Math.round(a + (t - i) * (STOPS[i + 1][k] - a))).join(",")})`;
}

/** Function from values to colours. */
const colouring = ({ low, high }) => (v) => colour((v - low) / (high - low || 1));

const RADII = { big: 5, here: 6.5, ring: 11 };

// Functions that draw each kind of layer. Dots outside the axes are drawn at the edge; cells have edges x and y.
const layers = {
  dots: ({ plot, X, Y, box }, { x, y, look }) => x.forEach((v, i) => {
    const [cx, cy] = [clamp(X(v), box.left + 2, box.right - 2), clamp(Y(y[i]), box.top + 2, box.bottom - 2)];
    add(plot, "circle", { class: look, cx: cx.toFixed(1), cy: cy.toFixed(1), r: RADII[look.split(" ")[0]] || 2.8 });
  }),
  diamonds: ({ plot, X, Y }, { x, y, look }) => x.forEach((v, i) => add(plot, "path", {
    class: look, d: `M${X(v)} ${Y(y[i]) - 7}l7 7l-7 7l-7 -7z`,
  })),
  line: ({ plot, X, Y }, { x, y, look }) => {
    const known = y.map((v) => v !== null && Number.isFinite(v)); // the line is broken where it is not
    const d = x.map((v, i) => (known[i] ? `${known[i - 1] ? "L" : "M"}${X(v).toFixed(1)} ${Y(y[i]).toFixed(1)}` : ""));
    add(plot, "path", { d: d.join(""), class: `curve ${look}` });
  },
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
  cells: ({ plot, X, Y }, { x, y, values, look = "" }, colourOf) => values.forEach((row, i) => row.forEach((v, j) => add(plot, "rect", {
    class: look, x: X(x[j]).toFixed(1), y: Y(y[i + 1]).toFixed(1),
    width: (X(x[j + 1]) - X(x[j]) + 0.6).toFixed(1), height: (Y(y[i]) - Y(y[i + 1]) + 0.6).toFixed(1), fill: colourOf(v),
  }))),
  places: ({ plot, X, Y }, { x, y, values }, colourOf) => x.forEach((v, i) => add(plot, "circle", {
    class: "place", cx: X(v).toFixed(1), cy: Y(y[i]).toFixed(1), r: 3, style: `fill:${colourOf(values[i])}`,
  })),
};

/** Draw a scale of colours at the right of a chart. */
function drawColours({ svg, box }, { low, high }, ticks) {
  const [x, steps] = [box.right + 14, 40];
  const h = (box.bottom - box.top) / steps;
  for (let i = 0; i < steps; i++) {
    add(svg, "rect", { x, y: box.bottom - (i + 1) * h, width: 14, height: h + 0.6, fill: colour((i + 0.5) / steps) });
  }
  const Y = scale(low, high, box.bottom, box.top);
  for (const v of ticks) add(svg, "text", { x: x + 19, y: Y(v) + 4 }, shown(v));
}

/** Draw a chart in the element `id`: layers over the axes x and y, and `alt` for those who do not see them. */
function drawChart({ id, x, y, layers: parts, alt, colours, shape }) {
  const ticks = colours ? linearTicks(colours.low, colours.high, 5) : [];
  const right = 40 + Math.max(...ticks.map((v) => letters(shown(v))));
  const aspect = shape ? ((x.high - x.low) * shape) / (y.high - y.low) : 1.5;
  const chart = frame(id, x, y, alt, colours ? { shape: clamp(aspect, 0.5, 2.5), right } : {});
  for (const part of parts) {
    const range = part.colours || colours;
    layers[part.kind](chart, part, range && colouring(range));
  }
  if (colours) drawColours(chart, colours, ticks);
}
