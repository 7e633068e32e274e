// Every setting of a search that can be changed here, by its name in the API.
// A setting that was not touched is not sent: the tenant's own holds, and is shown once it is known.

import { state } from "./state.js";

const CONTEXT_FIRST = "Until it is changed here, it holds for context and answer, not for the results";

export const OPTION_GROUPS = [
  {
    title: "Fusion",
    settings: [
      { name: "adaptive_weights", kind: "switch", label: "Adaptive weights", help: "The intent of the question chooses the weights", fallback: true },
      { name: "bm25_weight", kind: "slider", label: "BM25 weight", min: 0, max: 1, step: 0.05, fallback: 0.4 },
      { name: "vector_weight", kind: "slider", label: "Vector weight", min: 0, max: 1, step: 0.05, fallback: 0.6 },
      { name: "fusion", kind: "choice", label: "Fuse by", choices: [["rrf", "Ranks"], ["convex", "Scores"]], fallback: "rrf" },
    ],
  },
  {
    title: "Graph",
    settings: [
      { name: "walk_weight", kind: "amount", label: "Walk along links", min: 0.05, max: 1, step: 0.05, usual: 0.7, fallback: 0.7 },
      { name: "graph_prior_weight", kind: "amount", label: "PageRank", min: 0.05, max: 1, step: 0.05, usual: 0.3, fallback: 0 },
    ],
  },
  {
    title: "Reranking",
    settings: [
      { name: "reranker", kind: "choice", label: "Rerank by", choices: [["none", "None"], ["mmr", "MMR"], ["crossencoder", "Model"]], fallback: "none" },
      { name: "mmr_alpha", kind: "slider", label: "Relevance over diversity", min: 0, max: 1, step: 0.05, fallback: 0.5, when: { name: "reranker", is: "mmr" } },
    ],
  },
  {
    title: "Filters",
    settings: [
      { name: "confidence_threshold", kind: "amount", label: "Confidence gate", help: CONTEXT_FIRST, min: 0.05, max: 1, step: 0.05, usual: 0.5, fallback: 0.5 },
      { name: "quality_threshold", kind: "amount", label: "Quality filter", min: 0.05, max: 1, step: 0.05, usual: 0.3, fallback: 0.3 },
      { name: "multidoc", kind: "switch", label: "Several documents", help: `The best sections of several articles. ${CONTEXT_FIRST}`, fallback: true },
      { name: "min_relevance", kind: "slider", label: "Least relevance of a section", help: CONTEXT_FIRST, min: 0, max: 1, step: 0.05, fallback: 0.7, when: { name: "multidoc", is: true } },
      { name: "multi_query", kind: "switch", label: "More phrasings", help: "Claude rephrases the question, if the tenant's egress policy lets it", fallback: false },
    ],
  },
];

export const REQUEST_GROUP = {
  title: "Request",
  settings: [
    { name: "max_results", kind: "slider", label: "Results", min: 1, max: 20, step: 1, fallback: 8 },
    { name: "token_budget", kind: "slider", label: "Token budget", min: 200, max: 8000, step: 100, fallback: 8000 },
    { name: "dataset_name", kind: "text", label: "Dataset", placeholder: "all", fallback: "" },
  ],
};

export const GROUPS = [...OPTION_GROUPS, REQUEST_GROUP];
const BY_NAME = new Map(GROUPS.flatMap((group) => group.settings).map((each) => [each.name, each]));
const OPTIONS = OPTION_GROUPS.flatMap((group) => group.settings).map((each) => each.name);
const WEIGHTS = ["bm25_weight", "vector_weight"];
const SMALLEST_WEIGHT = 0.05;
// A plain search shows all there is; these hold where something is made of it.
const OF_CONTEXT = new Set(["confidence_threshold", "multidoc", "min_relevance"]);

/** Return what holds for a side: what was touched, else what the service used, else the usual. */
export function readSetting(side, name) {
  return side.touched[name] ?? readUsed(side, name) ?? BY_NAME.get(name).fallback;
}

/** Change a setting of a side, and what cannot go with it. */
export function touchSetting(side, name, value) {
  side.touched[name] = value;
  if (name === "adaptive_weights" && value) for (const weight of WEIGHTS) delete side.touched[weight];
  if (!WEIGHTS.includes(name)) return;
  for (const weight of WEIGHTS) side.touched[weight] ??= readSetting(side, weight);
  side.touched.adaptive_weights = false;
  if (WEIGHTS.every((weight) => side.touched[weight] === 0)) side.touched[name] = SMALLEST_WEIGHT;
}

/** Return the body of a search with the settings of a side. */
export function makeSearch(question, side) {
  const options = Object.fromEntries(
    OPTIONS.filter((name) => name in side.touched).map((name) => [name, side.touched[name]]),
  );
  const dataset = readSetting(side, "dataset_name").trim();
  return {
    query: question,
    max_results: readSetting(side, "max_results"),
    ...(dataset ? { dataset_name: dataset } : {}),
    options,
  };
}

/** Return the body of a request for a context or an answer with the settings of a side. */
export function makeContext(question, side) {
  const { token_budget: budget } = side.touched;
  return { ...makeSearch(question, side), ...(budget ? { token_budget: budget } : {}) };
}

function readUsed(side, name) {
  const context = state.context.value;
  if (name === "token_budget") return context?.budget;
  return (OF_CONTEXT.has(name) ? context : side.search)?.options[name];
}
