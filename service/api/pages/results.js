// The list of hits, one column a side.

import { compareHits } from "./compare.js";
import { find, make } from "./dom.js";
import { buildRating, giveFeedback } from "./feedback.js";
import { cutSnippet, markTerms } from "./highlight.js";
import { describeClosedGate, describeGate, describeNothing, describeProblem } from "./notices.js";
import { buildBars, measureScale } from "./scores.js";
import { readSetting } from "./settings.js";
import { shownSides, state } from "./state.js";

const SKELETONS = 4;
const opened = new Set();

/** Show what every side found, is finding, or why it found nothing. */
export function showResults() {
  const names = shownSides();
  const found = names.map((name) => state.sides[name].search?.hits ?? []);
  const compared = state.compare && names.every((name) => state.sides[name].search)
    ? compareHits(found[0], found[1])
    : null;
  find("difference").textContent = compared?.summary ?? "";
  const focused = document.activeElement?.getAttribute("aria-controls");
  find("columns").replaceChildren(
    ...names.map((name, place) => {
      const scale = measureScale(found[place], found.flat());
      return buildColumn(name, { scale, marks: compared?.marks[name] });
    }),
  );
  if (focused) document.querySelector(`.hit-title[aria-controls="${focused}"]`)?.focus({ preventScroll: true });
}

/** Show that a side is being searched; what it found before stays until then. */
export function showLoading(name) {
  const column = document.querySelector(`.column[data-side="${name}"]`);
  if (column && state.sides[name].search) column.setAttribute("aria-busy", "true");
  else showResults();
}

/** Close every card: another question is asked. */
export function forgetOpened() {
  opened.clear();
}

/** Go to the card of one of these nodes and open it; false where none is shown. */
export function jumpToNode(nodeIds) {
  const cards = [...document.querySelectorAll(".hit")];
  const card = cards.find((each) => nodeIds.includes(Number(each.dataset.node)));
  if (!card) return false;
  const button = card.querySelector(".hit-title");
  if (button.getAttribute("aria-expanded") === "false") button.click();
  flash(card, button);
  return true;
}

/** Bring an element to view, give it the focus, and light it up for a moment. */
export function flash(element, focused = element) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  focused.focus({ preventScroll: true });
  element.classList.remove("flash");
  requestAnimationFrame(() => element.classList.add("flash"));
}

function buildColumn(name, { scale, marks }) {
  const side = state.sides[name];
  const column = make("div", { class: "column", "data-side": name, "aria-busy": String(side.loading) });
  if (state.compare) column.append(make("h3", { class: "column-title" }, name));
  if (side.error) column.append(describeProblem(side.error));
  else if (!side.search) column.append(...Array.from({ length: SKELETONS }, buildSkeleton));
  else column.append(...buildFound(side, { scale, marks, name }));
  return column;
}

function buildFound(side, { scale, marks, name }) {
  const { search } = side;
  const gated = search.confidence !== null && search.confidence < readSetting(side, "confidence_threshold");
  if (search.hits.length === 0) return [gated ? describeClosedGate(search, name) : describeNothing(search)];
  const hits = search.hits.map((hit) => buildHit(hit, { search, scale, mark: marks?.get(hit.node.node_id), name }));
  const warning = gated ? describeGate(search) : null;
  return [buildSummary(search), warning, make("ol", { class: "hits" }, ...hits)].filter(Boolean);
}

function buildSummary(search) {
  const facts = [
    `${search.hits.length} ${search.hits.length === 1 ? "result" : "results"}`,
    search.mode_reason ? `${search.mode} only: ${search.mode_reason}` : search.mode,
    search.intent === "other" ? null : `intent ${search.intent}`,
    search.confidence === null ? null : `confidence ${search.confidence.toFixed(2)}`,
    search.cached ? "cached" : null,
    search.shortfall ? `${search.shortfall.asked} asked: ${search.shortfall.reason}` : null,
    ...search.fallbacks,
  ];
  return make("p", { class: "summary" }, ...facts.filter(Boolean).map((fact) => make("span", {}, fact)));
}

function buildHit(hit, { search, scale, mark, name }) {
  const { node } = hit;
  const id = `text-${name}-${node.node_id}`;
  const snippet = make("p", { class: "snippet" }, ...markTerms(cutSnippet(readText(node), search.terms), search.terms));
  const more = make("div", { class: "more", id, hidden: true });
  const title = make(
    "button",
    { class: "hit-title", type: "button", "aria-expanded": "false", "aria-controls": id },
    node.header || node.title || node.external_id,
  );
  const parts = { title, snippet, more, hit, search };
  title.addEventListener("click", () => {
    if (more.hidden) giveFeedback(search.trace_id, node.node_id, "clicked");
    setOpen(parts, more.hidden);
  });
  if (opened.has(id)) setOpen(parts, true);
  return make(
    "li",
    { class: "hit", "data-node": node.node_id },
    make("span", { class: "place", "aria-label": `Place ${hit.position}` }, String(hit.position)),
    make("div", { class: "hit-body" },
      make("div", { class: "hit-head" }, make("h4", {}, title), buildMark(mark), buildBand(hit)),
      make("p", { class: "path" }, describePath(node)),
      snippet,
      more,
    ),
    buildBars(hit.scores, scale),
  );
}

function setOpen({ title, snippet, more, hit, search }, open) {
  if (open) opened.add(more.id);
  else opened.delete(more.id);
  if (open && !more.hasChildNodes()) more.append(...buildMore(hit, search));
  title.setAttribute("aria-expanded", String(open));
  more.hidden = !open;
  snippet.hidden = open;
}

function buildMore({ node, terms, relevance, scores }, search) {
  const parts = Object.entries(terms ?? {}).sort(([, first], [, second]) => second - first);
  const facts = [
    ["node", node.node_id],
    ["type", node.node_type],
    ["dataset", node.dataset_name],
    ["relevance", relevance.toFixed(2)],
    ["fused", scores.combined.toFixed(3)],
    ["confidence", scores.confidence?.toFixed(2)],
    ["model", scores.cross_encoder?.toFixed(2)],
    ["tokens", node.token_count],
  ].filter(([, value]) => value !== null && value !== undefined);
  return [
    make("div", { class: "full" }, ...markTerms(readText(node), search.terms)),
    parts.length
      ? make("p", { class: "terms" }, "BM25 by term ", ...parts.map(([term, part]) => make("span", {}, `${term} ${part.toFixed(2)}`)))
      : null,
    make("p", { class: "facts" }, ...facts.map(([label, value]) => make("span", {}, `${label} ${value}`))),
    buildRating(search.trace_id, node.node_id, node.header || node.title),
  ].filter(Boolean);
}

function buildMark(mark) {
  if (!mark) return null;
  return make("span", { class: `mark ${mark.kind}`, title: mark.label, "aria-label": mark.label, role: "img" }, mark.text);
}

function buildBand({ band, relevance }) {
  return make("span", { class: `band ${band}`, title: "Relevance, 0 to 1, on an absolute scale" }, `${band} ${relevance.toFixed(2)}`);
}

const readText = (node) => [node.summary, node.content].filter(Boolean).join("\n\n") || node.title;

function describePath(node) {
  const path = node.section_path ?? "";
  return path && path !== (node.header || node.title) ? path : `${node.dataset_name} › ${node.external_id}`;
}

function buildSkeleton() {
  return make("div", { class: "skeleton", "aria-hidden": "true" }, make("i"), make("i"), make("i"));
}
