// Plots drawn by hand as pictures: lines and bars over time, each with its numbers as a table.

import { draw, make } from "./dom.js";

const WIDTH = 520;
const HEIGHT = 170;
const LEFT = 46;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 22;
const STEP_LEFT = 76;
const STEP_RIGHT = 84;
const STEP_HEIGHT = 20;

/**
 * Return a plot. `times` are dates in order; each of `series` has a name, a tone, a kind (line or
 * bar) and a value or null for each time. `most` is the top of the scale where it is known.
 */
export function plot({ title, times, series, format, most = null, when }) {
  const known = series.flatMap((each) => each.values).filter((value) => value !== null);
  const top = most ?? roundUp(Math.max(...known, 0));
  const scale = makeScale(times, top);
  const picture = draw(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": describe(title, series, format) },
    ...drawGrid(top, scale, format),
    ...drawTimes(times, scale, when),
    ...series.flatMap((each) => (each.kind === "bar" ? drawBars(each, times, scale, format) : drawLine(each, times, scale, format))),
  );
  return [picture, makeLegend(series), makeNumbers(["Time", ...series.map((each) => each.name)], listRows(times, series, format, when))];
}

/** Return rows of numbers as a table that can be opened. */
export function makeNumbers(head, rows, { open = false } = {}) {
  const table = make(
    "table",
    { class: "numbers" },
    make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col" }, each)))),
    make("tbody", {}, ...rows.map(([name, ...cells]) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((cell) => make("td", {}, cell))))),
  );
  return open ? table : make("details", {}, make("summary", {}, "As numbers"), table);
}

/** Return bars of steps from left to right: p95, and p50 within it. */
export function plotSteps(title, steps, format) {
  const top = Math.max(...steps.map((each) => each.p95_ms)) || 1;
  const wide = (value) => (value / top) * (WIDTH - STEP_LEFT - STEP_RIGHT);
  const rows = steps.flatMap((each, place) => {
    const y = place * STEP_HEIGHT + 2;
    const bar = (value, tone) => draw("rect", { class: "column", "data-tone": tone, x: STEP_LEFT, y, width: wide(value), height: STEP_HEIGHT - 6, rx: 2 });
    const text = (x, words, anchor) => draw("text", { x, y: y + STEP_HEIGHT - 10, "text-anchor": anchor }, words);
    return [
      text(STEP_LEFT - 8, each.step, "end"), bar(each.p95_ms, "1"), bar(each.p50_ms, "3"),
      text(STEP_LEFT + wide(each.p95_ms) + 6, `${format(each.p50_ms)} / ${format(each.p95_ms)}`, "start"),
    ];
  });
  const said = steps.map((each) => `${each.step} ${format(each.p50_ms)} and ${format(each.p95_ms)}`).join(", ");
  const picture = draw("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${steps.length * STEP_HEIGHT}`, role: "img", "aria-label": `${title}: ${said}` }, ...rows);
  return [picture, makeLegend([{ name: "p50", tone: "3" }, { name: "p95", tone: "1" }])];
}

/** The top of a scale: the next even first digit, so that its middle is a plain number too. */
function roundUp(largest) {
  if (!largest) return 2;
  const unit = 10 ** Math.floor(Math.log10(largest));
  return Math.ceil(largest / unit / 2) * 2 * unit;
}

function makeScale(times, top) {
  const first = times[0]?.getTime() ?? 0;
  const span = (times.at(-1)?.getTime() ?? 0) - first;
  const wide = WIDTH - LEFT - RIGHT;
  return {
    x: (time) => LEFT + (span ? ((time.getTime() - first) / span) * (wide - 12) + 6 : wide / 2),
    y: (value) => TOP + (1 - Math.min(value, top) / top) * (HEIGHT - TOP - BOTTOM),
    bar: Math.max(2, Math.min(18, (wide / Math.max(1, times.length)) * 0.7)),
  };
}

function drawGrid(top, scale, format) {
  return [0, 0.5, 1].flatMap((share) => {
    const y = scale.y(top * share);
    return [
      draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
      draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, format(top * share)),
    ];
  });
}

function drawTimes(times, scale, when) {
  const marked = times.length > 1 ? [times[0], times.at(-1)] : times;
  return marked.map((time, place) =>
    draw("text", { x: scale.x(time), y: HEIGHT - 4, "text-anchor": times.length > 1 ? ["start", "end"][place] : "middle" }, when(time)));
}

function drawBars({ name, tone, values }, times, scale, format) {
  return times.map((time, place) => {
    const y = scale.y(values[place] ?? 0);
    const height = HEIGHT - BOTTOM - y;
    if (!values[place]) return null;
    const title = draw("title", {}, `${name} ${format(values[place])}`);
    return draw("rect", { class: "column", "data-tone": tone, x: scale.x(time) - scale.bar / 2, y, width: scale.bar, height }, title);
  });
}

function drawLine({ name, tone, values }, times, scale, format) {
  const points = times.map((time, place) => [time, values[place]]).filter(([, value]) => value !== null);
  const path = points.map(([time, value], place) => `${place ? "L" : "M"}${scale.x(time).toFixed(1)} ${scale.y(value).toFixed(1)}`).join("");
  return [
    draw("path", { class: "line", "data-tone": tone, d: path }),
    ...points.map(([time, value]) =>
      draw("circle", { class: "dot", "data-tone": tone, cx: scale.x(time), cy: scale.y(value), r: 2.6 }, draw("title", {}, `${name} ${format(value)}`))),
  ];
}

function makeLegend(series) {
  return make("ul", { class: "legend" }, ...series.map((each) => make("li", { "data-tone": each.tone }, each.name)));
}

function listRows(times, series, format, when) {
  return times.map((time, place) => [when(time), ...series.map((each) => (each.values[place] === null ? "" : format(each.values[place])))]);
}

function describe(title, series, format) {
  const parts = series.map((each) => {
    const last = each.values.filter((value) => value !== null).at(-1);
    return last === undefined ? `${each.name} not known` : `${each.name} ${format(last)} at last`;
  });
  return `${title}: ${parts.join(", ")}`;
}
