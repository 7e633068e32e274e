// What a person makes of a hit goes back to the service. That it fails there is no trouble here.

import { post } from "./api.js";
import { announce, make } from "./dom.js";

const LABELS = { helpful: "Helpful", not_helpful: "Not helpful" };
const given = new Set();

/** Tell the service once that a node of a search was opened, or what it was worth. */
export async function giveFeedback(traceId, nodeId, signal) {
  const key = makeKey(traceId, nodeId, signal);
  if (given.has(key)) return true;
  given.add(key);
  try {
    await post("/v1/feedback", { trace_id: traceId, node_id: nodeId, signal });
    return true;
  } catch {
    given.delete(key);
    return false;
  }
}

/** Two buttons to say whether a hit helped; one answer is enough. */
export function buildRating(traceId, nodeId, name) {
  const buttons = Object.entries(LABELS).map(([signal, label]) => {
    const pressed = given.has(makeKey(traceId, nodeId, signal));
    return make("button", { type: "button", class: "rate", "data-signal": signal, "aria-pressed": String(pressed) }, label);
  });
  const close = () => buttons.forEach((button) => button.setAttribute("aria-disabled", "true"));
  if (buttons.some((button) => button.getAttribute("aria-pressed") === "true")) close();
  for (const button of buttons) button.addEventListener("click", () => rate(button));
  return make("div", { class: "rating", role: "group", "aria-label": `Was “${name}” helpful?` }, ...buttons);

  async function rate(button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    const kept = await giveFeedback(traceId, nodeId, button.dataset.signal);
    announce(kept ? "Thank you, that is noted." : "That could not be noted.");
    if (!kept) return;
    button.setAttribute("aria-pressed", "true");
    close();
  }
}

const makeKey = (traceId, nodeId, signal) => `${traceId} ${nodeId} ${signal}`;
