// The playground: what happens when something is asked, changed or pressed.

import { askForKey, connectKeyDialog, handleRefusal, showWho } from "./access.js";
import { markAnswerStale, stopAnswer, streamAnswer } from "./answer.js";
import { get } from "./api.js";
import { buildControls, refreshControls, resetControls } from "./controls.js";
import { find, make } from "./dom.js";
import { showGraph } from "./graph.js";
import { connectKeyboard } from "./keyboard.js";
import { describeProblem } from "./notices.js";
import { forgetOpened, showResults } from "./results.js";
import { searchNow, searchSoon, stopSearch } from "./search.js";
import { makeContext, touchSetting } from "./settings.js";
import { leadingSide, state } from "./state.js";

function ask(question) {
  const text = question.trim();
  if (!text) {
    find("question").focus();
    return;
  }
  find("question").value = text;
  state.question = text;
  forgetOpened();
  for (const side of Object.values(state.sides)) Object.assign(side, { search: null, error: null });
  state.context.value = null;
  state.graph.value = null;
  document.body.classList.add("asked");
  showGraph();
  searchNow();
  answerNow();
}

function answerNow() {
  streamAnswer(makeContext(state.question, leadingSide()), handleRefusal);
}

function changed() {
  if (!state.question) return;
  if (state.editing === "A") markAnswerStale();
  searchSoon();
}

function setCompare(on) {
  state.compare = on;
  find("workbench").classList.toggle("comparing", on);
  find("sides").hidden = !on;
  if (on) state.sides.B.touched = { ...state.sides.A.touched };
  edit(on ? "B" : "A");
  showResults();
  if (on) searchNow();
}

function edit(name) {
  state.editing = name;
  for (const button of find("sides").children) {
    button.setAttribute("aria-pressed", String(button.dataset.side === name));
  }
  refreshControls();
}

function toggleSettings() {
  const open = find("settings-body").classList.toggle("open");
  find("fold").setAttribute("aria-expanded", String(open));
  find("fold").textContent = open ? "Hide" : "Show";
}

function openGate(name) {
  touchSetting(state.sides[name], "confidence_threshold", 0);
  edit(name);
  changed();
}

function showExamples(questions) {
  find("examples").replaceChildren(
    ...questions.map((question) =>
      make("li", {}, make("button", { class: "example", type: "button", on: { click: () => ask(question) } }, question))),
  );
}

async function start() {
  try {
    const service = await get("/playground/start.json");
    showExamples(service.examples);
    if (service.demo) showWho("Demo");
    else askForKey();
  } catch (problem) {
    find("examples").replaceWith(describeProblem(problem));
  }
}

buildControls(changed);
refreshControls();
connectKeyDialog(() => { if (state.question) ask(state.question); else find("question").focus(); });
connectKeyboard(() => { stopSearch(); stopAnswer(); });
find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(find("question").value);
});
find("compare").addEventListener("change", (event) => setCompare(event.target.checked));
find("sides").addEventListener("click", (event) => {
  if (event.target.dataset.side) edit(event.target.dataset.side);
});
find("reset").addEventListener("click", () => { resetControls(); changed(); });
find("fold").addEventListener("click", toggleSettings);
find("answer-again").addEventListener("click", answerNow);
find("columns").addEventListener("click", (event) => {
  if (event.target.dataset.openGate) openGate(event.target.dataset.openGate);
});
find("question").focus({ preventScroll: true });
start();
