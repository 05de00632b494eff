// Which conversations fit the filters, and in which order.

import { category, index, isDivided, scenarioOf } from "./data.js";

const TESTS = {
  agent: (unit, value) => unit.agent === value,
  outcome: (unit, value) => category(unit) === value,
  task: (unit, value) => scenarioOf(unit).task === value,
  persona: (unit, value) => scenarioOf(unit).persona === value,
  stance: (unit, value) => unit.stance === value,
  fault: (unit, value) => (unit.fault ?? "NONE") === value,
  split: (unit) => isDivided(unit),
  mismatch: (unit) => Boolean(unit.mismatch),
};

// The dimension that the score filters and the score order are about.
export function dimensionOf(state) {
  return state.score || index.dimensions[0]?.key;
}

export function scoreOf(unit, state) {
  return unit.scores?.[dimensionOf(state)];
}

export function select(state) {
  const tests = Object.keys(TESTS).filter((name) => state[name]).map((name) => [TESTS[name], state[name]]);
  const low = state.min === "" ? -Infinity : Number(state.min);
  const high = state.max === "" ? Infinity : Number(state.max);
  const bounded = low > -Infinity || high < Infinity;
  const inRange = (score) => score !== undefined && score >= low && score <= high;
  const found = index.units.filter((unit) =>
    tests.every(([test, value]) => test(unit, value)) && (!bounded || inRange(scoreOf(unit, state))));
  return state.sort ? ordered(found, state) : found;
}

function ordered(units, state) {
  const sign = state.sort === "high" ? -1 : 1;
  const place = (unit) => (scoreOf(unit, state) === undefined ? Infinity : sign * scoreOf(unit, state));
  return units.sort((a, b) => place(a) - place(b) || 0);
}
