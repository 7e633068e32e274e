// The picture of what is linked around the results, and the same as a list.

import { draw, find, make } from "./dom.js";
import { layOut } from "./layout.js";
import { describeProblem } from "./notices.js";
import { jumpToNode } from "./results.js";
import { leadingSide, state } from "./state.js";

const WIDTH = 400;
const HEIGHT = 300;
const MARGIN = { x: 46, top: 20, bottom: 32 };
const SMALLEST = 3.5;
const LARGEST = 14;
const LABEL_LENGTH = 20;
const LABELLED = 4;

/** Show the graph around the hits, or that there is none. */
export function showGraph() {
  const { value, error } = state.graph;
  find("graph-body").replaceChildren(...buildBody(value, error));
}

function buildBody(graph, error) {
  if (error) return [describeProblem(error)];
  if (!graph && leadingSide().error) return [];
  if (!graph) return [make("div", { class: "skeleton tall", "aria-hidden": "true" }, make("i"))];
  if (graph.links.length === 0) return [make("p", { class: "hint" }, "Nothing links to or from these results.")];
  const ends = new Set(graph.links.flatMap((link) => [link.source_id, link.target_id]));
  const linked = graph.nodes.filter((node) => ends.has(node.node_id));
  return [buildPicture({ ...graph, nodes: linked }), buildList(graph)];
}

function buildPicture({ nodes, links }) {
  const places = new Map(
    [...layOut(nodes.map((node) => node.node_id), links)].map(([id, { x, y }]) => [id, {
      x: MARGIN.x + x * (WIDTH - 2 * MARGIN.x),
      y: MARGIN.top + y * (HEIGHT - MARGIN.top - MARGIN.bottom),
    }]),
  );
  const label = `${nodes.length} nodes and ${links.length} links; the list below names them.`;
  return draw(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "picture", role: "group", "aria-label": label },
    draw("g", { class: "links", "aria-hidden": "true" }, ...links.map((link) => drawLink(link, places))),
    draw("g", {}, ...[...nodes].sort(byRank).map((node) => drawNode(node, places))),
    draw("g", { class: "labels", "aria-hidden": "true" }, ...drawLabels(nodes, places)),
  );
}

function drawLink({ source_id: source, target_id: target }, places) {
  const [from, to] = [places.get(source), places.get(target)];
  if (!from || !to) return null;
  return draw("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
}

function drawNode(node, places) {
  const { x, y } = places.get(node.node_id);
  const hits = findHits(node);
  const circle = draw("circle", { cx: x, cy: y, r: radius(node), class: node.asked ? "asked" : "near" },
    draw("title", {}, `${nameOf(node)} · PageRank ${formatRank(node)}`));
  if (hits.length === 0) return circle;
  const go = () => jumpToNode([hits[0].node.node_id]);
  return draw(
    "g",
    {
      class: "way", tabindex: "0", role: "link", "aria-label": `Result ${hits[0].position}: ${nameOf(node)}`,
      on: { click: go, keydown: (event) => { if (event.key === "Enter") go(); } },
    },
    circle,
  );
}

/** Write the names that have room: the results first, then the best ranked. */
function drawLabels(nodes, places) {
  const taken = [];
  const wanted = [...nodes.filter((node) => node.asked).sort(byRank), ...nodes.filter((node) => !node.asked).sort(byRank).slice(0, LABELLED)];
  return wanted.map((node) => {
    const { x, y } = places.get(node.node_id);
    const text = shorten(nameOf(node));
    const half = text.length * 2.7;
    const at = { x: Math.min(WIDTH - half - 2, Math.max(half + 2, x)), y: y + radius(node) + 11 };
    const box = { left: at.x - half, right: at.x + half, top: at.y - 9, bottom: at.y + 3 };
    if (taken.some((other) => overlap(box, other))) return null;
    taken.push(box);
    return draw("text", { x: at.x, y: at.y }, text);
  });
}

function buildList({ nodes, links }) {
  const count = (id) => links.filter((link) => link.source_id === id || link.target_id === id).length;
  const rows = [...nodes].sort(byRank).map((node) =>
    make("tr", {}, make("td", {}, nameOf(node)), make("td", {}, formatRank(node)), make("td", {}, String(count(node.node_id)))));
  return make(
    "details",
    { class: "as-list" },
    make("summary", {}, `${nodes.length} nodes, ${links.length} links as a list`),
    make("table", {},
      make("thead", {}, make("tr", {}, ...["Node", "PageRank", "Links"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows),
    ),
  );
}

function findHits(node) {
  const hits = leadingSide().search?.hits ?? [];
  return hits.filter((hit) => hit.node.node_id === node.node_id || hit.node.parent_id === node.node_id);
}

const nameOf = (node) => node.title || node.header || `node ${node.node_id}`;
const radius = (node) => SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(Math.max(0, node.rank ?? 0));
const formatRank = (node) => (node.rank === null ? "–" : node.rank.toFixed(2));
const byRank = (a, b) => (b.rank ?? 0) - (a.rank ?? 0);
const shorten = (name) => (name.length > LABEL_LENGTH ? `${name.slice(0, LABEL_LENGTH - 1)}…` : name);
const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
