// The quality page: what /v1/stats says of the key's tenant, as tiles and plots.

import { askForKey, connectKeyDialog, handleRefusal, showWho } from "./access.js";
import { get, hasKey } from "./api.js";
import { announce, find, make } from "./dom.js";
import { describeProblem } from "./notices.js";
import { makeNumbers, plot, plotSteps } from "./plots.js";

const UNITS = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]];
const PROBE = "/v1/stats?hours=1";
let hours = 24;

const whole = (value) => Math.round(value).toLocaleString("en");
const share = (value) => value.toFixed(2);
const milliseconds = (value) => (value < 10 ? value.toFixed(1) : whole(value));
const bytes = (value) => {
  const place = UNITS.findLastIndex(([size]) => value >= size);
  return place < 0 ? "0" : `${(value / UNITS[place][0]).toPrecision(3)} ${UNITS[place][1]}`;
};
const orUnknown = (value, format) => (value === null ? "–" : format(value));
const asHour = (time) => time.toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const asDay = (time) => time.toLocaleDateString([], { month: "short", day: "numeric" });

async function load() {
  if (!hasKey()) {
    askForKey();
    return;
  }
  try {
    const stats = await get(`/v1/stats?hours=${hours}`);
    showWho(stats.tenant_id);
    show(stats);
  } catch (problem) {
    find("figures").replaceChildren();
    if (!handleRefusal(problem)) find("notices").replaceChildren(describeProblem(problem));
  }
}

function show(stats) {
  const quiet = stats.traffic.searches === 0;
  find("notices").replaceChildren(...(quiet ? [describeQuiet()] : []));
  find("figures").replaceChildren(makeTiles(stats), make("div", { class: "plots" }, ...makePanels(stats)));
  announce(`${stats.traffic.searches} searches in the last ${stats.hours} hours.`);
}

function describeQuiet() {
  return make(
    "div",
    { class: "notice" },
    make("b", {}, "Nobody has searched in this time."),
    make("p", {}, "Ask something in the playground or over the API, and look again: figures come from searches and from feedback on them."),
  );
}

function makeTiles({ traffic, recall, storage }) {
  const tiles = [
    ["Searches", whole(traffic.searches), `${whole(traffic.errors)} failed`],
    ["Latency p95", traffic.p95_ms === null ? "–" : `${milliseconds(traffic.p95_ms)} ms`, `p50 ${orUnknown(traffic.p50_ms, milliseconds)} ms`],
    ["From cache", orUnknown(traffic.cache_hit_rate, share), "share of searches"],
    ["Click-through", orUnknown(traffic.click_through, share), "share of searches"],
    ["MRR", orUnknown(traffic.mrr, share), `${whole(traffic.judged)} with feedback`],
    ["Good in the first 5", orUnknown(traffic.positive_in_top, share), "of those with feedback"],
    ["Recall", orUnknown(recall.recall, share), `${whole(recall.audits)} audits`],
    ["Nodes", whole(storage.nodes), describeGrowth(storage.growth)],
    ["Dead postings", share(storage.dead_share), `${whole(storage.segments)} segments`],
  ];
  return make("dl", { class: "tiles" }, ...tiles.map(([name, value, note]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, note)))));
}

const describeGrowth = (growth) => (growth ? `${growth.nodes < 0 ? "" : "+"}${whole(growth.nodes)} since ${growth.since}` : "now");

function makePanels(stats) {
  const { hours: byHour, recall, sizes } = stats.series;
  const times = byHour.map((each) => new Date(each.hour));
  const column = (name) => byHour.map((each) => each[name]);
  return [
    makePanel("Searches and errors by the hour", byHour.length, "No searches yet.", () => plot({
      title: "Searches by the hour", times, when: asHour, format: whole,
      series: [
        { name: "searches", tone: "0", kind: "bar", values: column("searches") },
        { name: "errors", tone: "warn", kind: "bar", values: column("errors") },
      ],
    })),
    makePanel("Latency by the hour, ms", byHour.length, "No searches yet.", () => plot({
      title: "Latency in milliseconds", times, when: asHour, format: milliseconds,
      series: [
        { name: "p50", tone: "3", values: column("p50_ms") },
        { name: "p95", tone: "1", values: column("p95_ms") },
      ],
    })),
    makePanel("Latency by step, ms", stats.latencies.length, "No searches yet.", () => [
      ...plotSteps("Latency by step in milliseconds, p50 and p95", stats.latencies, milliseconds),
      makeNumbers(["Step", "times", "p50", "p95", "p99"], stats.latencies.map((each) =>
        [each.step, whole(each.times), milliseconds(each.p50_ms), milliseconds(each.p95_ms), milliseconds(each.p99_ms)])),
    ]),
    makePanel("What people think", stats.traffic.judged + (stats.traffic.click_through ? 1 : 0), "No feedback yet: POST /v1/feedback.", () => plot({
      title: "Feedback by the hour", times, when: asHour, format: share, most: 1,
      series: [
        { name: "MRR", tone: "0", values: column("mrr") },
        { name: "click-through", tone: "2", values: column("click_through") },
      ],
    })),
    makePanel("Recall of the vector index", recall.length, "No audits yet: small tenants are searched exactly and need none.", () => plot({
      title: "Recall by the hour", times: recall.map((each) => new Date(each.hour)), when: asHour, format: share, most: 1,
      series: [{ name: "recall", tone: "3", values: recall.map((each) => each.recall) }],
    })),
    ...makeGrowthPanels(sizes),
    ...(stats.variants.length ? [makeVariants(stats.variants)] : []),
  ];
}

function makeGrowthPanels(sizes) {
  const times = sizes.map((each) => new Date(each.marked_on));
  const empty = "No marks yet: contextforge maintain puts one down a day.";
  const panel = (heading, name, format, tone) => makePanel(heading, sizes.length, empty, () => plot({
    title: heading, times, when: asDay, format,
    series: [{ name, tone, values: sizes.map((each) => each[name]) }],
  }));
  return [panel("Nodes by the day", "nodes", whole, "0"), panel("Bytes by the day", "bytes", bytes, "4")];
}

function makeVariants(variants) {
  const rows = variants.map((each) => [
    `${each.variant} (${each.experiment_id.slice(0, 8)})`, whole(each.searches), whole(each.errors),
    orUnknown(each.mrr, share), orUnknown(each.click_through, share), orUnknown(each.p95_ms, milliseconds),
  ]);
  const head = ["Variant", "searches", "errors", "MRR", "click-through", "p95 ms"];
  return makePanel("Variants of experiments", 1, "", () => [makeNumbers(head, rows, { open: true })]);
}

function makePanel(heading, amount, empty, fill) {
  const body = amount ? fill() : [make("p", { class: "hint" }, empty)];
  return make("section", { class: "panel", "aria-label": heading },
    make("div", { class: "panel-head" }, make("h2", {}, heading)), ...body);
}

function look(button) {
  hours = Number(button.dataset.hours);
  for (const each of find("spans").children) each.setAttribute("aria-pressed", String(each === button));
  load();
}

connectKeyDialog(load, PROBE);
find("spans").addEventListener("click", (event) => {
  if (event.target.dataset.hours) look(event.target);
});
load();
