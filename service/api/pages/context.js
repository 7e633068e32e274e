// The packed context: how the token budget was spent, and why the rest was left out.

import { find, make, withProperty } from "./dom.js";
import { describeProblem } from "./notices.js";
import { flash } from "./results.js";
import { state } from "./state.js";

const REASONS = {
  same_node: "is there already",
  empty: "has no text",
  near_duplicate: "says the same as another",
  per_doc_cap: "its document has its share",
  per_section_cap: "its section has its share",
  budget: "beyond the budget",
};

/** Show the context, that it is being packed, or why there is none. */
export function showContext() {
  const { value, error, loading } = state.context;
  find("context").setAttribute("aria-busy", String(loading));
  find("context-total").textContent = value && !error ? `${value.tokens} of ${value.budget} tokens` : "";
  find("context-body").replaceChildren(...buildBody(value, error));
}

/** Go to the block with this number and open it; false where there is none. */
export function jumpToBlock(number) {
  const block = document.querySelector(`.block[data-block="${Number(number)}"]`);
  if (!block) return false;
  block.open = true;
  flash(block, block.querySelector("summary"));
  return true;
}

function buildBody(value, error) {
  if (error) return [describeProblem(error)];
  if (!value) return [make("div", { class: "skeleton", "aria-hidden": "true" }, make("i"), make("i"))];
  if (value.blocks.length === 0) return [make("p", { class: "hint" }, "Nothing to pack.")];
  const dropped = value.candidates.filter((each) => each.outcome === "dropped");
  return [
    buildBudget(value),
    ...value.blocks.map(buildBlock),
    dropped.length ? make("h3", {}, `Left out (${dropped.length})`) : null,
    dropped.length ? make("ul", { class: "drops" }, ...dropped.map(buildDrop)) : null,
  ].filter(Boolean);
}

function buildBudget({ tokens, budget, blocks }) {
  const label = `${tokens} of ${budget} tokens in ${blocks.length} ${blocks.length === 1 ? "source" : "sources"}`;
  const pieces = blocks.map((block) => {
    const piece = make("span", { title: `[${block.number}] ${block.tokens} tokens` });
    return withProperty(piece, "--share", block.tokens / budget);
  });
  return make("div", { class: "budget", role: "img", "aria-label": label }, ...pieces);
}

function buildBlock(block) {
  const reunited = block.items.filter((item) => item.role === "reunited").length;
  const extras = [
    `${block.tokens} tokens`,
    reunited ? `${reunited} reunited` : null,
    block.trimmed ? "trimmed" : null,
  ].filter(Boolean);
  return make(
    "details",
    { class: "block", "data-block": block.number },
    make("summary", {},
      make("span", { class: "number" }, `[${block.number}]`),
      make("span", { class: "heading" }, block.header || block.title),
      make("small", {}, extras.join(" · ")),
    ),
    make("p", { class: "path" }, block.section_path || block.heading),
    make("div", { class: "full" }, block.body),
  );
}

function buildDrop({ title, section_path: path, reason, detail, tokens }) {
  const why = [REASONS[reason] ?? reason, detail].filter(Boolean).join(": ");
  return make("li", {}, make("span", {}, path || title), make("small", {}, `${why} · ${tokens} tokens`));
}
