// The settings panel: one control a setting, always showing what holds.

import { find, make } from "./dom.js";
import { GROUPS, readSetting, touchSetting } from "./settings.js";
import { state } from "./state.js";

const BUILDERS = { switch: buildSwitch, slider: buildSlider, amount: buildAmount, choice: buildChoice, text: buildText };
const refreshers = [];
let tellChange = () => {};

/** Build the panel; onChange is told the name of every setting that is changed. */
export function buildControls(onChange) {
  tellChange = onChange;
  find("controls").replaceChildren(
    ...GROUPS.map((group) =>
      make("fieldset", {}, make("legend", {}, group.title), ...group.settings.map(buildRow)),
    ),
  );
}

/** Let every control show what holds for the side that is edited. */
export function refreshControls() {
  const side = state.sides[state.editing];
  for (const refresh of refreshers) refresh(side);
}

/** Forget every change of the side that is edited. */
export function resetControls() {
  state.sides[state.editing].touched = {};
  refreshControls();
}

function buildRow(setting) {
  const row = BUILDERS[setting.kind](setting);
  if (setting.help) row.title = setting.help;
  row.dataset.setting = setting.name;
  refreshers.push((side) => {
    row.classList.toggle("touched", setting.name in side.touched);
    if (setting.when) row.hidden = readSetting(side, setting.when.name) !== setting.when.is;
  });
  return row;
}

function change(name, value) {
  touchSetting(state.sides[state.editing], name, value);
  refreshControls();
  tellChange(name);
}

function buildSwitch({ name, label }) {
  const input = make("input", { type: "checkbox", role: "switch", id: `set-${name}` });
  input.addEventListener("change", () => change(name, input.checked));
  refreshers.push((side) => { input.checked = readSetting(side, name); });
  return make("label", { class: "switch-row" }, make("span", {}, label), input);
}

function buildSlider(setting) {
  const { slider, figure } = buildRange(setting, `set-${setting.name}`);
  const label = make("label", { for: `set-${setting.name}` }, setting.label);
  return make("div", { class: "slider-row" }, label, figure, slider);
}

/** A switch with a slider: 0 is off, and on again is what it was before. */
function buildAmount(setting) {
  const { name, label, usual } = setting;
  const toggle = make("input", { type: "checkbox", role: "switch", id: `set-${name}` });
  const { slider, figure } = buildRange(setting, `amount-${name}`);
  slider.setAttribute("aria-label", `${label}: amount`);
  let before = usual;
  toggle.addEventListener("change", () => change(name, toggle.checked ? before : 0));
  refreshers.push((side) => {
    const value = readSetting(side, name);
    if (value > 0) before = value;
    toggle.checked = value > 0;
    slider.hidden = figure.hidden = value === 0;
  });
  const head = make("label", { class: "switch-row" }, make("span", {}, label), figure, toggle);
  return make("div", { class: "amount-row" }, head, slider);
}

function buildRange({ name, min, max, step }, id) {
  const slider = make("input", { type: "range", id, min, max, step });
  const figure = make("span", { class: "value", "aria-hidden": "true" });
  slider.addEventListener("input", () => change(name, Number(slider.value)));
  refreshers.push((side) => {
    const value = readSetting(side, name);
    slider.value = value;
    figure.textContent = Number.isInteger(step) ? String(value) : value.toFixed(2);
  });
  return { slider, figure };
}

function buildChoice({ name, label, choices }) {
  const options = choices.map(([value, text]) => {
    const input = make("input", { type: "radio", name: `set-${name}`, value, id: `set-${name}-${value}` });
    input.addEventListener("change", () => change(name, value));
    refreshers.push((side) => { input.checked = readSetting(side, name) === value; });
    return make("label", {}, input, make("span", {}, text));
  });
  const group = make("div", { class: "choice", role: "radiogroup", "aria-label": label }, ...options);
  return make("div", { class: "choice-row" }, make("span", {}, label), group);
}

function buildText({ name, label, placeholder }) {
  const input = make("input", { type: "text", id: `set-${name}`, placeholder, spellcheck: "false" });
  input.addEventListener("input", () => change(name, input.value));
  refreshers.push((side) => {
    if (input !== document.activeElement) input.value = readSetting(side, name);
  });
  return make("div", { class: "text-row" }, make("label", { for: `set-${name}` }, label), input);
}
