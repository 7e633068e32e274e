// Text with a little markup (paragraphs, lists, code, bold) and citations, as elements.

import { make } from "./dom.js";

const INLINE = /(\[\d+(?:\s*,\s*\d+)*\]|`[^`]+`|\*\*[^*]+\*\*)/;
const BULLET = /^\s*(?:[-*+]|\d+[.)])\s+/;
const FENCE = /^\s*```/;

/** Return the blocks of a text; onCite is told the number of a citation that is pressed. */
export function buildProse(text, onCite) {
  return groupLines(text.split("\n")).map((group) => {
    if (group.kind === "code") return make("pre", {}, group.lines.join("\n"));
    if (group.kind === "list") {
      const items = group.lines.map((line) => make("li", {}, ...buildInline(line.replace(BULLET, ""), onCite)));
      return make("ul", {}, ...items);
    }
    const heading = group.lines.map((line) => line.replace(/^#{1,6}\s+/, ""));
    return make("p", {}, ...heading.flatMap((line, place) => [place ? make("br") : "", ...buildInline(line, onCite)]));
  });
}

function groupLines(lines) {
  const groups = [];
  let open = null;
  const start = (kind) => {
    open = { kind, lines: [] };
    groups.push(open);
  };
  for (const line of lines) {
    if (FENCE.test(line)) {
      if (open?.kind === "code") open = null;
      else start("code");
    } else if (open?.kind === "code") {
      open.lines.push(line);
    } else if (!line.trim()) {
      open = null;
    } else {
      const kind = BULLET.test(line) ? "list" : "text";
      if (open?.kind !== kind) start(kind);
      open.lines.push(line);
    }
  }
  return groups;
}

function buildInline(line, onCite) {
  return line.split(INLINE).flatMap((piece, place, all) => {
    // A citation stays on the line of what it supports.
    if (place % 2 === 0) return all[place + 1]?.startsWith("[") ? piece.replace(/\s+$/, "\u00a0") : piece;
    if (piece.startsWith("`")) return make("code", {}, piece.slice(1, -1));
    if (piece.startsWith("**")) return make("b", {}, piece.slice(2, -2));
    return piece.match(/\d+/g).map((number) => buildCitation(Number(number), onCite));
  });
}

function buildCitation(number, onCite) {
  const listener = { click: () => onCite(number) };
  return make("button", { class: "cite", type: "button", "aria-label": `Source ${number}`, "data-cite": number, on: listener }, String(number));
}
