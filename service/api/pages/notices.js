// What to show where there is nothing to show: what happened, and what to do about it.

import { make } from "./dom.js";

/** Return a notice about a problem. */
export function describeProblem(problem) {
  return make(
    "div",
    { class: "notice problem", role: "alert" },
    make("b", {}, problem.message),
    problem.hint ? make("p", {}, problem.hint) : null,
  );
}

/** Return a notice about results that are too far from the question. */
export function describeGate(search) {
  return make(
    "p",
    { class: "notice" },
    `No context and no answer are made of these: the best confidence, ${search.confidence.toFixed(2)}, is below the gate.`,
  );
}

/** Return a notice about a search that found nothing. */
export function describeNothing(search) {
  const reason = search.shortfall?.reason ?? "Use other words, or search all datasets.";
  return make("div", { class: "notice" }, make("b", {}, "Nothing was found."), make("p", {}, reason));
}

/** Return a notice about a gate that let nothing through; the page listens for its button. */
export function describeClosedGate(search, side) {
  const text = `The best confidence is ${search.confidence.toFixed(2)}. Ask differently, or look at what was found all the same.`;
  return make(
    "div",
    { class: "notice" },
    make("b", {}, "Nothing is close enough to the question."),
    make("p", {}, text),
    make("button", { class: "quiet", type: "button", "data-open-gate": side }, "Turn the gate off"),
  );
}
