/** Charts by hand: SVG for the eye, and a table with the same numbers for everybody else. */

/** @typedef {{ x: number, y: number, label: string, mark: boolean, note?: string, href?: string }} ChartPoint */
/** @typedef {{ label: string, points: { x: number, y: number, note?: string }[] }} ChartLine */
/** @typedef {{ label: string, value: number | null, interval?: Interval | null, note?: string, href?: string }} ChartBar */

const CHART = { width: 680, height: 330, left: 58, right: 16, top: 14, bottom: 44 };
/** A chart as wide as there is room for, so that a narrow screen has all of it, in letters of the usual size. */
const roomyChart = () => ({ ...CHART, width: within(innerWidth - 56, 280, CHART.width) });
/** About how wide a letter of a chart is. */
const LETTER = 6.6;
/** Lines differ by their dashes and signs too, not by colour alone. */
const DASHES = ["", "7 4", "2 3", "10 3 2 3", "14 4", "5 2", "1 4", "12 3 2 3 2 3"];
const SIGNS = ["●", "■", "▲", "◆", "▼", "+", "×", "★"];

/** A value as a bar, and its interval over it.
 * @param {number | null} value @param {Interval | null | undefined} interval
 * @param {number} low @param {number} high ends of the scale @param {string} label
 * @returns {SVGElement} */
function intervalBar(value, interval, low, high, label) {
  const width = 120;
  /** @param {number} at */
  const x = (at) => (width * (within(at, low, high) - low)) / (high - low || 1);
  const said = `${label}: ${score(value)}${rangeText(interval)}`;
  const zero = x(Math.max(low, 0));
  return svg("svg.interval-bar", { role: "img", label: said, width, height: 14, viewBox: `0 0 ${width} 14` },
    svg("title", said),
    svg("rect.bar-track", { x: 0, y: 3, width, height: 8 }),
    low < 0 && svg("line.bar-zero", { x1: zero, x2: zero, y1: 0, y2: 14 }),
    value !== null && svg("rect.bar-value", { x: Math.min(zero, x(value)), y: 3, width: Math.abs(x(value) - zero), height: 8 }),
    interval && svg("path.bar-interval", { d: `M${x(interval.low)} 3v8M${x(interval.high)} 3v8M${x(interval.low)} 7H${x(interval.high)}` }));
}

/** Round numbers over a range. @param {number} low @param {number} high @param {number} [count] */
function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((each) => raw / power <= each) ?? 10);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

/** Powers of ten and what is between them. @param {number} low @param {number} high */
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    found.push(...(high / low > 1000 ? [1] : [1, 2, 5]).map((part) => part * 10 ** power).filter((at) => at >= low && at <= high));
  }
  return found;
}

/** @param {number} value @param {number} [digits] */
const tickText = (value, digits = 3) => (Math.abs(value) < 1e-12 ? 0 : value)
  .toLocaleString("en", { notation: "compact", maximumSignificantDigits: digits });

/** What ticks are called, with as many digits as tell them apart.
 * @param {number[]} values which differ
 * @param {number} [digits]
 * @returns {string[]} */
function tickTexts(values, digits = 3) {
  const texts = values.map((value) => tickText(value, digits));
  return digits > 20 || new Set(texts).size === texts.length ? texts : tickTexts(values, digits + 1);
}

/** Ticks below a chart with their texts, as many as do not touch.
 * @param {number[]} values @param {(value: number) => number} x
 * @returns {[number, string][]} places and texts */
function ticksApart(values, x) {
  let free = 0;
  const texts = tickTexts(values);
  return values.map((at, index) => /** @type {[number, string]} */ ([x(at), texts[index] ?? ""])).filter(([at, { length }]) => {
    const fits = at > free + length * 3.3;
    if (fits) free = at + length * 3.3 + 6;
    return fits;
  });
}

/** Axes, and functions from values to places.
 * @param {{ x: string, y: string, xs: number[], ys: number[], logarithmic?: boolean | undefined }} options */
function axes({ x: xTitle, y: yTitle, xs, ys, logarithmic = false }) {
  const log = logarithmic && xs.every((each) => each > 0);
  const [xLow, xHigh] = range(xs, log);
  const [yLow, yHigh] = range(ys, false);
  const { width, height, left, right, top, bottom } = roomyChart();
  /** @param {number} value */
  const across = (value) => (log ? Math.log(value / xLow) / Math.log(xHigh / xLow) : (value - xLow) / (xHigh - xLow));
  /** @param {number} value */
  const x = (value) => left + across(value) * (width - left - right);
  /** @param {number} value */
  const y = (value) => height - bottom - ((value - yLow) / (yHigh - yLow)) * (height - top - bottom);
  const rows = ticks(yLow, yHigh);
  const rowTexts = tickTexts(rows);
  const drawn = svg("g.axes", { ...UNHEARD, "text-anchor": "middle" },
    rows.map((at, index) => [
      svg("line", { x1: left, x2: width - right, y1: y(at), y2: y(at) }),
      svg("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, rowTexts[index])]),
    ticksApart(log ? logTicks(xLow, xHigh) : ticks(xLow, xHigh, 7), x).map(([at, text]) => [
      svg("line", { x1: at, x2: at, y1: height - bottom, y2: height - bottom + 5 }),
      svg("text", { x: at, y: height - bottom + 18 }, text)]),
    svg("text", { x: width / 2, y: height - 6 }, xTitle + (log ? " (logarithmic)" : "")),
    svg("text", { x: 0, y: 0, transform: `translate(14 ${(height - bottom + top) / 2}) rotate(-90)` }, yTitle));
  return { x, y, drawn, viewBox: `0 0 ${width} ${height}`, width };
}

/** @param {number[]} values @param {boolean} log @returns {[number, number]} */
function range(values, log) {
  // Not Math.min(...values): there may be more values than a call has arguments.
  let [low, high] = [Infinity, -Infinity];
  for (const each of values) [low, high] = [Math.min(low, each), Math.max(high, each)];
  if (low > high) return [0, 1];
  if (log) return [low / 1.25, high * 1.25];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low >= 0 ? Math.max(0, low - margin) : low - margin, high + margin];
}

/** @param {string} title @param {Child} drawing @param {string[]} heads @param {Child[][]} rows */
const figure = (title, drawing, heads, rows) => h("figure.chart", h("figcaption", title), drawing,
  unfolding("details.chart-data", "Numbers", false, () => plainTable(h("span.hidden", title), heads, rows.slice(0, 2000))));

/** Points with names. Marked ones are filled diamonds.
 * @param {{ title: string, x: string, y: string, points: ChartPoint[], logarithmic?: boolean }} options
 * @returns {HTMLElement} */
function scatterChart({ title, x: xTitle, y: yTitle, points, logarithmic }) {
  const { x, y, drawn, viewBox, width } = axes({ x: xTitle, y: yTitle, xs: points.map((each) => each.x), ys: points.map((each) => each.y), logarithmic });
  /** Where there are points, and labels: left, bottom and width. @type {[number, number, number][]} */
  const taken = points.map((point) => [x(point.x) - 5, y(point.y) + 4, 10]);
  /** @param {ChartPoint} point */
  const more = ({ note }) => (note ? `, ${note}` : "");
  const signs = points.map((point, at) => {
    const [px, py] = [x(point.x), y(point.y)];
    const name = point.label.length > 28 ? `${point.label.slice(0, 12)}…${point.label.slice(-15)}` : point.label;
    const text = labelPlace(px, py, name.length * LETTER, taken.toSpliced(at, 1), width);
    if (text) taken.push(text.taken);
    const said = `${point.label}: ${xTitle} ${tickText(point.x)}, ${yTitle} ${score(point.y)}${more(point)}`;
    const sign = svg("g", { class: point.mark ? "point marked" : "point" }, svg("title", said),
      point.mark ? svg("path", { d: `M${px} ${py - 7}l7 7l-7 7l-7 -7z` }) : svg("circle", { cx: px, cy: py, r: 5 }),
      text && svg("text", { x: text.x, y: text.y, "text-anchor": text.anchor }, name));
    return point.href ? svg("a", { href: point.href, label: said }, sign) : sign;
  });
  return figure(title, svg("svg", { viewBox, role: "group", label: title }, drawn, signs),
    ["Name", xTitle, yTitle, "Marked"], points.map((each) => [each.href ? anchor(each.href, each.label) : each.label, tickText(each.x), score(each.y), (each.mark ? "yes" : "no") + more(each)]));
}

/** Where a label has room beside its point; null where it has none, as the table has all names.
 * @param {number} x @param {number} y @param {number} width @param {[number, number, number][]} taken x, y and width of others
 * @param {number} room the width of the chart
 * @returns {{ x: number, y: number, anchor: string, taken: [number, number, number] } | null} */
function labelPlace(x, y, width, taken, room) {
  for (const [at, down, anchor] of /** @type {[number, number, string][]} */ ([
    [x + 10, y + 4, "start"], [x - 10, y + 4, "end"], [x + 8, y - 9, "start"], [x + 8, y + 17, "start"], [x - 8, y - 9, "end"], [x - 8, y + 17, "end"],
  ])) {
    const from = anchor === "start" ? at : at - width;
    const free = taken.every(([left, top, size]) => Math.abs(top - down) > 13 || from > left + size + 4 || from + width + 4 < left);
    if (from < CHART.left || from + width > room || down < 10 || !free) continue;
    return { x: at, y: down, anchor, taken: [from, down, width] };
  }
  return null;
}

/** @param {{ title: string, x: string, y: string, lines: ChartLine[] }} options
 * @returns {HTMLElement} */
function lineChart({ title, x: xTitle, y: yTitle, lines }) {
  const all = lines.flatMap((line) => line.points);
  const { x, y, drawn, viewBox } = axes({ x: xTitle, y: yTitle, xs: all.map((each) => each.x), ys: [0, ...all.map((each) => each.y)] });
  const paths = lines.map((line, number) => {
    const every = Math.max(1, Math.ceil(line.points.length / 12));
    return svg(`g.line-chart.${series(number)}`, svg("title", line.label),
      svg("path", { "stroke-dasharray": DASHES[number % 8], d: line.points.map((each, at) => `${at ? "L" : "M"}${x(each.x).toFixed(1)} ${y(each.y).toFixed(1)}`).join("") }),
      line.points.filter((_, at) => (at + number) % every === 0 || at === line.points.length - 1).map((each) =>
        svg("text", { x: x(each.x), y: y(each.y) + 4, "text-anchor": "middle" }, SIGNS[number % 8], svg("title", `${line.label}, ${xTitle} ${tickText(each.x)}: ${score(each.y)}${each.note ? `, ${each.note}` : ""}`))));
  });
  return figure(title, [svg("svg", { viewBox, role: "img", label: `${title}: ${lines.length} lines; their numbers are below` }, drawn, paths), seriesLegend(lines.map((line) => line.label), (at) => SIGNS[at % 8] ?? "")],
    ["Line", xTitle, yTitle, "Note"], lines.flatMap((line) => line.points.map((each) => [line.label, tickText(each.x), score(each.y), each.note ?? ""])));
}

/** Pillars of process as bars from 0 to 1, in a table that needs no other for screen readers.
 * @param {string} title @param {ChartBar[]} bars */
function barChart(title, bars) {
  const heads = ["Pillar", "Value", "Bar", ...(bars.some((bar) => bar.note) ? ["Interval and coverage"] : [])];
  return plainTable(title, heads, bars.map(({ label, value, interval, note, href }) => [
    href ? anchor(href, label) : label,
    score(value, 2),
    h("span", UNHEARD, intervalBar(value, interval, 0, 1, label)),  // It only repeats the text beside it.
    [interval && `${score(interval.low, 2)} to ${score(interval.high, 2)}; `, note],
  ].slice(0, heads.length)), 4);
}

/** Lines or parts by their names, each with its sign and colour. @param {string[]} names @param {(at: number) => string} sign */
const seriesLegend = (names, sign) => h("ul.legend", names.map((name, at) =>
  h("li", h(`b.${series(at)}`, UNHEARD, sign(at)), ` ${name}`)));

/** The sign of a part of a bar. @param {number} at */
const letter = (at) => String.fromCharCode(65 + (at % 26));

/** The class of a colour. @param {number} at @returns {`series-${number}`} */
const series = (at) => `series-${(at % 8) + 1}`;

/** Bars of parts, each with a letter of its own.
 * @param {{ title: string, parts: string[], bars: { label: string, values: number[], href?: string }[], format(value: number): string }} options
 * @returns {HTMLElement} */
function stackedBars({ title, parts, bars, format }) {
  const sums = bars.map((bar) => bar.values.reduce((sum, value) => sum + value, 0));
  const most = sums.reduce((high, sum) => Math.max(high, sum), 0) || 1;
  const width = 400;
  /** @param {number[]} values */
  const bar = (values) => {
    let from = 0;
    return svg("svg.stacked", { ...UNHEARD, viewBox: `0 0 ${width} 20`, preserveAspectRatio: "none", width, height: 20 }, values.map((value, at) => {
      const size = (width * value) / most;
      const part = svg(`g.${series(at)}`, svg("title", `${parts[at]}: ${format(value)}`),
        svg("rect", { x: from, y: 1, width: Math.max(size - 1, size && 0.5), height: 18 }), size > 14 && svg("text", { x: from + size / 2, y: 14, "text-anchor": "middle" }, letter(at)));
      from += size;
      return part;
    }));
  };
  const rows = bars.map((each, at) => ({ ...each, name: each.href ? anchor(each.href, each.label) : each.label, sum: format(sums[at] ?? 0) }));
  return figure(title, [seriesLegend(parts, letter), plainTable("", ["Name", "Bar", "All"], rows.map(({ name, values, sum }) => [name, bar(values), sum]), 2)],
    ["", ...parts, "All"], rows.map(({ label, values, sum }) => [label, ...values.map(format), sum]));
}

/** Bars of what was done when, on one scale of seconds: a row of rectangles for each part, above one another.
 * @param {{ parts: string[], seconds: number, bars: { label: string, spans: [number, number][][], href: string | null }[] }} options
 * @returns {HTMLElement} */
function timeBars({ parts, seconds, bars }) {
  const high = 20 / parts.length;
  const x = (/** @type {number} */ moment) => (400 * within(moment, 0, seconds)) / seconds;
  const bar = (/** @type {[number, number][][]} */ spans) => svg("svg.stacked", { ...UNHEARD, viewBox: "0 0 400 20", preserveAspectRatio: "none", width: 400, height: 20 },
    spans.map((each, at) => svg(`g.${series(at)}`, each.map(([from, to]) => svg("rect", { x: x(from), y: at * high, width: x(to) - x(from) + 0.5, height: high })))));
  return h("figure.chart", seriesLegend(parts, letter), plainTable("", ["Name", "Bar", ...parts], bars.map(({ label, spans, href }) =>
    [href ? anchor(href, label) : label, bar(spans), ...spans.map((each) => duration(each.reduce((sum, [from, to]) => sum + to - from, 0)))]), 2));
}
