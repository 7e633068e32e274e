// The latency strip: where the milliseconds of a search went.

import { find, make, withProperty } from "./dom.js";

const TOTAL = "total";
const REST = "other";
const LEAST_SHARE = 0.004;

/** Show the steps of a search; roundTrip is what the browser measured. */
export function showLatency(search, roundTrip) {
  const total = search.timings.find((each) => each.step === TOTAL)?.milliseconds ?? 0;
  const steps = listSteps(search.timings, total);
  find("latency-total").textContent = `${format(total)} ms, ${format(roundTrip)} ms in the browser`;
  find("latency-body").replaceChildren(
    make("div", { class: "strip", role: "img", "aria-label": describe(steps) }, ...steps.map(buildPiece)),
    make("ul", { class: "steps" }, ...steps.map(buildStep)),
  );
}

function listSteps(timings, total) {
  const steps = timings.filter((each) => each.step !== TOTAL);
  const rest = total - steps.reduce((sum, each) => sum + each.milliseconds, 0);
  const all = rest > 0 ? [...steps, { step: REST, milliseconds: rest }] : steps;
  const whole = all.reduce((sum, each) => sum + each.milliseconds, 0) || 1;
  return all
    .map((each) => ({ ...each, share: each.milliseconds / whole }))
    .filter((each) => each.share >= LEAST_SHARE)
    .map((each, place) => ({ ...each, place }));
}

function buildPiece({ step, milliseconds, share, place }) {
  const piece = make("span", { "data-tone": tone(step, place), title: `${step} ${format(milliseconds)} ms` });
  return withProperty(piece, "--share", share);
}

function buildStep({ step, milliseconds, place }) {
  return make("li", { "data-tone": tone(step, place) }, make("span", {}, step), make("b", {}, format(milliseconds)));
}

const tone = (step, place) => (step === REST ? "rest" : place % 8);
const describe = (steps) => steps.map((each) => `${each.step} ${format(each.milliseconds)} milliseconds`).join(", ");
const format = (milliseconds) => (milliseconds < 10 ? milliseconds.toFixed(1) : milliseconds.toFixed(0));
