// Four bars a hit: each on the scale its score has, the figure beside it.

import { make, withProperty } from "./dom.js";

const BARS = [
  ["bm25", "BM25", "BM25; a full bar is the largest shown"],
  ["vector", "Vector", "Cosine of question and text; a full bar is 1"],
  ["graph", "Graph", "PageRank; a full bar is the tenant's largest"],
  ["final", "Final", "What the list is ordered by; a full bar is the largest shown"],
];

/** Return what a full bar means: 1 where a score has an end, else the largest that is shown. */
export function measureScale(hits, allHits) {
  const largest = (list, name) => Math.max(0, ...list.map((hit) => hit.scores[name] ?? 0));
  return { bm25: largest(allHits, "bm25"), vector: 1, graph: 1, final: largest(hits, "final") };
}

/** Return the bars of a hit as a list of terms and values. */
export function buildBars(scores, scale) {
  return make("dl", { class: "bars" }, ...BARS.map(([name, label, help]) => buildBar({ name, label, help }, scores[name], scale[name])));
}

function buildBar({ name, label, help }, score, full) {
  const share = score === null || full === 0 ? 0 : Math.min(1, Math.max(0, score / full));
  const bar = withProperty(make("span", { class: "bar", "aria-hidden": "true" }), "--share", share);
  const figure = make("span", { class: "figure" }, score === null ? "–" : score.toFixed(name === "bm25" ? 1 : 2));
  return make("div", { class: `score ${name}`, title: help }, make("dt", {}, label), make("dd", {}, bar, figure));
}
