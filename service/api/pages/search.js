// Searching: both sides, the context and the graph; what is out of date is called off.

import { handleRefusal } from "./access.js";
import { isAbort, post } from "./api.js";
import { showContext } from "./context.js";
import { refreshControls } from "./controls.js";
import { announce, find } from "./dom.js";
import { showGraph } from "./graph.js";
import { showLatency } from "./latency.js";
import { showLoading, showResults } from "./results.js";
import { makeContext, makeSearch } from "./settings.js";
import { leadingSide, shownSides, state } from "./state.js";

const DEBOUNCE = 160;
const CALLED_OFF = { message: "The search was called off.", hint: "Press Enter in the question to search again." };
const running = new Map();
let waiting = null;

/** Search again a moment after the last change. */
export function searchSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(searchNow, DEBOUNCE);
}

/** Search with the settings of every shown side. */
export function searchNow() {
  clearTimeout(waiting);
  if (!state.question) return;
  find("workbench").hidden = false;
  for (const name of shownSides()) searchSide(name);
  packContext();
}

/** Call off what is under way. */
export function stopSearch() {
  clearTimeout(waiting);
  for (const controller of running.values()) controller.abort();
  for (const name of shownSides()) {
    const side = state.sides[name];
    if (side.loading && !side.search) side.error = CALLED_OFF;
    side.loading = false;
  }
  state.context.loading = false;
  showResults();
  showContext();
}

async function searchSide(name) {
  const side = state.sides[name];
  const signal = begin(name);
  side.loading = true;
  showLoading(name);
  const started = performance.now();
  try {
    const found = await post("/v1/search", { ...makeSearch(state.question, side), explain: true }, signal);
    Object.assign(side, { search: found, error: null, loading: false });
    if (name === "A") {
      showLatency(found, performance.now() - started);
      drawGraph(found.hits);
    }
    announce(`${found.hits.length} results.`);
  } catch (error) {
    if (isAbort(error)) return;
    Object.assign(side, { search: null, error, loading: false });
    showGraph();
    handleRefusal(error);
  }
  showResults();
  refreshControls();
}

async function packContext() {
  const signal = begin("context");
  const side = leadingSide();
  const body = makeContext(state.question, side);
  state.context.loading = true;
  showContext();
  try {
    state.context = { value: await post("/v1/context", body, signal), error: null, loading: false };
  } catch (error) {
    if (isAbort(error)) return;
    state.context = { value: null, error, loading: false };
  }
  refreshControls();
  showContext();
}

async function drawGraph(hits) {
  const signal = begin("graph");
  const nodeIds = hits.map((hit) => hit.node.node_id);
  try {
    const value = nodeIds.length ? await post("/v1/graph", { node_ids: nodeIds }, signal) : { nodes: [], links: [] };
    state.graph = { value, error: null };
  } catch (error) {
    if (isAbort(error)) return;
    state.graph = { value: null, error };
  }
  showGraph();
}

function begin(name) {
  running.get(name)?.abort();
  const controller = new AbortController();
  running.set(name, controller);
  return controller.signal;
}
