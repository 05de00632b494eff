// A case: what it is about, and the conversations that the agents had about it, side by side or one alone.

import { backdrop } from "./backdrop.js";
import { caseKey, personaName, scenarioOf, taskOf, unitById, unitsByCase } from "./data.js";
import { fill, h } from "./dom.js";
import { transcripts } from "./load.js";
import { address } from "./state.js";
import { unitColumn } from "./unit.js";
import { words } from "./words.js";

const HINT = "Choose a conversation. Its scenario is shown as all agents played it, side by side.";

let wanted = ""; // Transcripts that arrive late must not replace what was asked for since.
let shown = "";

export async function showCase(place, units, state, moveFocus) {
  const key = JSON.stringify([state.unit, state.alone]);
  wanted = key;
  if (key === shown) {
    steps(place.querySelector(".steps"), units, state);
    return;
  }
  shown = key;
  const unit = unitById.get(state.unit);
  if (!unit) {
    const missing = [h("p", { class: "steps" }, back(state)), h("p", null, `There is no unit ${state.unit} in this report.`)];
    fill(place, state.unit ? missing : h("p", { class: "dim" }, HINT));
    return;
  }
  fill(place, h("p", { class: "dim", role: "status" }, "Loading the transcripts…"));
  const content = await transcripts(unit.scenario).catch((error) => error);
  if (wanted !== key) return;
  if (content instanceof Error) {
    shown = "";
    fill(place, h("p", { class: "steps" }, back(state)), h("p", { class: "alert", role: "alert" }, content.message));
    return;
  }
  fill(place, heading(unit, units, state, content), columns(unit, state, content));
  showChosen(place.querySelector(".columns"));
  if (moveFocus) place.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function showChosen(columns) {
  const chosen = columns.querySelector(".chosen");
  if (chosen) columns.scrollLeft = chosen.offsetLeft - columns.offsetLeft;
}

function back(state) {
  return h("a", { class: "back", href: address(state, { unit: "" }) }, "Back to the list");
}

function steps(place, units, state) {
  if (!place) return;
  const at = units.findIndex((unit) => unit.id === state.unit);
  const link = (unit, text) => unit && h("a", { href: address(state, { unit: unit.id, page: "" }) }, text);
  fill(
    place,
    back(state),
    at >= 0 && link(units[at - 1], "Previous"),
    at >= 0 && link(units[at + 1], "Next"),
  );
}

function heading(unit, units, state, content) {
  const scenario = scenarioOf(unit);
  const { summary, ambiguity, complexity } = taskOf(unit);
  const about = [scenario.task, personaName(unit), ambiguity, complexity, `scenario ${scenario.id}`];
  const nav = h("nav", { class: "steps", "aria-label": "Conversations" });
  steps(nav, units, state);
  return h(
    "header", null,
    nav,
    h("h2", null, summary || scenario.task),
    h("p", { class: "dim" }, about.filter(Boolean).join(" · ")),
    backdrop(content),
    controls(unit, state),
  );
}

// Switches between the columns, and between the cases of a scenario when it was played in several ways.
function controls(unit, state) {
  const toggle = (alone, text) => h(
    "button",
    { type: "button", "aria-pressed": String(Boolean(state.alone) === alone), click: () => { location.hash = address(state, { alone: alone ? "1" : "" }); } },
    text,
  );
  const others = [...unitsByCase.values()]
    .map((units) => units.find((other) => other.agent === unit.agent) ?? units[0])
    .filter((other) => other.scenario === unit.scenario && caseKey(other) !== caseKey(unit));
  const way = (other) => `${words(other.stance)}, trial ${(other.trial ?? 0) + 1}`;
  const link = (other) => h("a", { href: address(state, { unit: other.id, page: "" }) }, way(other));
  return h(
    "div", { class: "controls" },
    toggle(false, "All agents side by side"),
    toggle(true, `Only ${unit.agent}`),
    others.length > 0 && h("span", null, `Played as ${way(unit)}; also as `, others.flatMap((other, at) => [at ? ", " : "", link(other)])),
  );
}

function columns(unit, state, content) {
  const units = state.alone ? [unit] : unitsByCase.get(caseKey(unit));
  const records = new Map(content.units.map((record) => [record.unit.unit_id, record]));
  const made = units
    .filter((each) => records.has(each.id))
    .map((each) => unitColumn(each, records.get(each.id), content, { chosen: each.id === unit.id, state }));
  return h("div", { class: "columns", tabindex: 0, role: "group", "aria-label": "Conversations side by side" }, made);
}
