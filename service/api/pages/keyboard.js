// Keys: / to the question, arrows through the results, Esc back.

import { find } from "./dom.js";

/** Listen to keys; onLeave is called when Esc is pressed in the question. */
export function connectKeyboard(onLeave) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || find("key-dialog").open) return;
    if (event.key === "/" && !isTyping(event.target)) take(event, () => goToQuestion());
    else if (event.key === "Escape") leave(event, onLeave);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event);
  });
}

function step(event) {
  const titles = [...document.querySelectorAll(".hit-title")];
  const down = event.key === "ArrowDown";
  if (event.target === find("question")) {
    if (down && titles.length) take(event, () => titles[0].focus());
    return;
  }
  const place = titles.indexOf(event.target);
  if (place < 0) return;
  const next = titles[place + (down ? 1 : -1)];
  if (next) take(event, () => next.focus());
  else if (!down) take(event, () => goToQuestion());
}

function leave(event, onLeave) {
  if (event.target === find("question")) {
    onLeave();
    return;
  }
  const card = event.target.closest(".hit");
  const title = card?.querySelector(".hit-title");
  if (title?.getAttribute("aria-expanded") === "true") title.click();
  else goToQuestion();
}

function goToQuestion() {
  find("question").focus();
  find("question").select();
}

function take(event, act) {
  event.preventDefault();
  act();
}

const isTyping = (element) => element.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea");
