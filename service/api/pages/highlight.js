// Finds the words of a text that a search matched, and the part of the text that holds most of them.

import { make } from "./dom.js";

const WORD = /[\p{L}\p{N}]+/gu;
const SHORT_ENDINGS = new Set(["", "e", "s", "es", "d", "ed", "ing", "ings", "ly", "y"]);
const LONG_ENDINGS = new Set([
  "er", "ers", "or", "ors", "ion", "ions", "ation", "ations", "able", "ible", "ment", "ments", "al",
  "ally", "ive", "ity", "ities", "ness", "ful", "ance", "ence", "ate", "ates", "ated", "ating", "ize",
  "izes", "ized", "izing", "ization", "ise", "ised", "ical", "ically", "ely", "ies", "ied", "ent", "ant",
]);
const LONG_STEM = 5;
const SNIPPET = 300;

/** Return the text as nodes, with the words of the terms marked. */
export function markTerms(text, terms) {
  const pieces = [];
  let end = 0;
  for (const { index, word } of findMatches(text, terms)) {
    pieces.push(text.slice(end, index), make("mark", {}, word));
    end = index + word.length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

/** Return the part of a text with the most different terms, about as long as two lines. */
export function cutSnippet(text, terms) {
  const flat = flatten(text);
  if (flat.length <= SNIPPET) return flat;
  const matches = findMatches(flat, terms);
  const start = Math.max(0, chooseStart(matches) - 60);
  const from = start === 0 ? 0 : flat.indexOf(" ", start) + 1;
  const cut = flat.slice(from, from + SNIPPET);
  const to = from + cut.length < flat.length ? cut.lastIndexOf(" ") : cut.length;
  return `${from > 0 ? "… " : ""}${cut.slice(0, to)}${from + to < flat.length ? " …" : ""}`;
}

/** Whether a word can be what a search engine's stem was made from. */
export function fitsStem(word, stem) {
  if (word === stem) return true;
  if (stem.endsWith("i") && ["y", "ies", "ied", "ying"].some((end) => word === stem.slice(0, -1) + end)) return true;
  if (!word.startsWith(stem)) return false;
  let rest = word.slice(stem.length);
  if (rest[0] === stem.at(-1) && rest.length > 2) rest = rest.slice(1);
  return SHORT_ENDINGS.has(rest) || (stem.length >= LONG_STEM && LONG_ENDINGS.has(rest));
}

function findMatches(text, terms) {
  const found = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const folded = word.toLowerCase();
    const term = terms.find((each) => fitsStem(folded, each));
    if (term !== undefined) found.push({ index, word, term });
  }
  return found;
}

function chooseStart(matches) {
  let best = { start: 0, count: 0 };
  for (const { index } of matches) {
    const near = matches.filter((each) => each.index >= index && each.index < index + SNIPPET - 80);
    const count = new Set(near.map((each) => each.term)).size;
    if (count > best.count) best = { start: index, count };
  }
  return best.start;
}

/** Leave out the marks that only make sense in lines: fences, table rules, bars. */
function flatten(text) {
  return text
    .replace(/^\s*```.*$/gm, " ")
    .replace(/^[\s|:-]+$/gm, " ")
    .replace(/\[([^\]\n]+)\]\([^)\s]*\)/g, "$1")
    .replace(/\s*\|\s*/g, " · ")
    .replace(/(?:^|\s)#{1,6}\s/g, " ")
    .replace(/\*\*|`/g, "")
    .replace(/\s+/g, " ")
    .replace(/^(?: ?· ?)+|(?: ?· ?)+$/g, "")
    .trim();
}
