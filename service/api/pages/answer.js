// The answer as it is written, and the way from a citation to its section.

import { isAbort, stream } from "./api.js";
import { jumpToBlock } from "./context.js";
import { announce, find, make } from "./dom.js";
import { describeProblem } from "./notices.js";
import { buildProse } from "./prose.js";
import { jumpToNode } from "./results.js";

const MODES = {
  claude: "written by Claude",
  extractive: "the sources' own sentences",
  gated: "nothing relevant was found",
  degraded: "the sources' own sentences: Claude failed",
};

let running = null;
let sources = new Map();
let text = "";
let drawing = false;

/** Ask for an answer and show it as it comes; a newer one takes its place. */
export async function streamAnswer(body, onProblem) {
  running?.abort();
  const own = (running = new AbortController());
  start();
  try {
    for await (const event of stream("/v1/answer", body, own.signal)) {
      if (own.signal.aborted) return;
      HANDLERS[event.name]?.(event.data);
    }
  } catch (error) {
    if (isAbort(error) || own.signal.aborted) return;
    fail(error);
    onProblem(error);
  } finally {
    if (running === own) find("answer").setAttribute("aria-busy", "false");
  }
}

/** Stop writing. */
export function stopAnswer() {
  running?.abort();
  find("answer").setAttribute("aria-busy", "false");
}

/** Say that the settings have changed since the answer was made. */
export function markAnswerStale() {
  if (!running) return;
  find("answer").classList.add("stale");
  find("answer-again").hidden = false;
}

const HANDLERS = {
  search_results(data) {
    sources = new Map(data.sources.map((source) => [source.number, source]));
  },
  message(data) {
    text += data.text;
    drawSoon();
  },
  error(data) {
    text = "";
    find("answer-foot").replaceChildren(describeProblem({ message: data.message, hint: data.hint }));
    drawSoon();
  },
  final_answer(data) {
    text = data.answer;
    drawText();
    showFoot(data);
    announce(`Answer with ${data.citations.length} citations.`);
  },
};

function start() {
  text = "";
  sources = new Map();
  find("answer").setAttribute("aria-busy", "true");
  find("answer").classList.remove("stale");
  find("answer-again").hidden = true;
  find("answer-mode").textContent = "";
  find("answer-foot").replaceChildren();
  find("answer-text").replaceChildren(make("div", { class: "skeleton", "aria-hidden": "true" }, make("i"), make("i")));
}

function fail(error) {
  find("answer-text").replaceChildren();
  find("answer-foot").replaceChildren(describeProblem(error));
}

/** Draw at most once a frame, however fast the words come. */
function drawSoon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawText();
  });
}

function drawText() {
  find("answer-text").replaceChildren(...buildProse(text, cite));
}

function cite(number) {
  const source = sources.get(number);
  if (source && jumpToNode(source.node_ids)) return;
  jumpToBlock(number);
}

function showFoot(answer) {
  find("answer-mode").textContent = MODES[answer.mode] ?? answer.mode;
  const usage = answer.token_usage.api_calls
    ? `${answer.model} · ${answer.token_usage.input_tokens} tokens in, ${answer.token_usage.output_tokens} out`
    : null;
  find("answer-foot").replaceChildren(
    ...[
      answer.citations.length ? make("ol", { class: "sources" }, ...answer.citations.map(buildSource)) : null,
      answer.notice ? make("p", { class: "hint" }, answer.notice) : null,
      usage ? make("p", { class: "hint" }, usage) : null,
    ].filter(Boolean),
  );
}

function buildSource(citation) {
  const { number, title, header, quotes } = citation;
  const name = header && header !== title ? `${title} › ${header}` : title;
  const listener = { click: () => cite(number) };
  return make(
    "li",
    {},
    make("button", { class: "cite", type: "button", "aria-label": `Source ${number}: ${name}`, on: listener }, String(number)),
    make("span", { title: quotes.join("\n") }, name),
  );
}
