// The data of the page: `summary` is report.json, `index` see policysweep/report/html/index.py, `outcomes` the
// name of each category in reading order.

import { bare } from "./words.js";

const data = JSON.parse(document.getElementById("data").textContent);

export const summary = data.summary;
export const index = data.index;
export const outcomes = new Map(Object.entries(data.outcomes));
export const agents = Object.keys(summary.agents);

export const NO_OUTCOME = "NO_OUTCOME_AGENT_FAULT";
export const UNSCORED = "UNSCORED";

// What a unit counts as, in the same categories as the figures of the report.
export function category(unit) {
  if (unit.fault === "AGENT") return NO_OUTCOME;
  return unit.fault || !unit.outcome ? UNSCORED : unit.outcome;
}

export function categoryName(key) {
  return outcomes.get(key) ?? "Not scored";
}

// An outcome by its name in the contract.
export function outcomeName(name) {
  const key = bare(name, "OUTCOME_");
  return key && key !== "UNSPECIFIED" ? categoryName(key) : "nothing";
}

export function scenarioOf(unit) {
  return index.scenarios[unit.scenario];
}

export function taskOf(unit) {
  return index.tasks[scenarioOf(unit).task] ?? { summary: "", issues: [] };
}

export function personaName(unit) {
  const id = scenarioOf(unit).persona;
  return index.personas[id] || id;
}

// Units that met the same case are compared with one another: same scenario, agent persona and trial.
export function caseKey(unit) {
  return JSON.stringify([unit.scenario, unit.stance, unit.trial ?? 0]);
}

export const unitById = new Map(index.units.map((unit) => [unit.id, unit]));
export const unitsByCase = Map.groupBy(index.units, caseKey);

const divided = new Set();
for (const [key, units] of unitsByCase) {
  if (new Set(units.map(category)).size > 1) divided.add(key);
}

export function isDivided(unit) {
  return divided.has(caseKey(unit));
}
