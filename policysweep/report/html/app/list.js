// The conversations found: how many, by outcome, and a page of them as links.

import { category, categoryName, index, outcomes, personaName, scenarioOf, taskOf, UNSCORED } from "./data.js";
import { fill, h } from "./dom.js";
import { scoreOf } from "./selection.js";
import { address } from "./state.js";
import { counted, percent } from "./words.js";

const PAGE = 50;

function pageOf(units, state) {
  const at = units.findIndex((unit) => unit.id === state.unit);
  const wanted = state.page ? Number(state.page) - 1 : Math.floor(Math.max(at, 0) / PAGE);
  return Math.min(Math.max(wanted || 0, 0), Math.max(Math.ceil(units.length / PAGE) - 1, 0));
}

export function showFound(place, units) {
  const counts = new Map();
  for (const unit of units) counts.set(category(unit), (counts.get(category(unit)) ?? 0) + 1);
  const bar = h("div", { class: "share-bar", "aria-hidden": "true" });
  const told = [];
  for (const key of [...outcomes.keys(), UNSCORED]) {
    if (!counts.has(key)) continue;
    const part = h("i", { class: `o-${key}` });
    part.style.flexGrow = counts.get(key);
    bar.append(part);
    told.push(`${categoryName(key)} ${percent(counts.get(key) / units.length)}`);
  }
  const total = `${units.length.toLocaleString("en")} of ${counted(index.units.length, "conversation")}`;
  fill(place, h("strong", null, total), bar, h("span", { class: "dim" }, told.join(", ")));
}

function row(unit, state) {
  const score = scoreOf(unit, state);
  const key = category(unit);
  return h(
    "li", null,
    h(
      "a", { href: address(state, { unit: unit.id, page: "" }), "aria-current": unit.id === state.unit && "true" },
      h("span", null, h("span", { class: `chip o-${key}` }, categoryName(key)), " ", h("b", null, unit.agent)),
      h("span", null, unit.mismatch && h("span", { class: "flag" }, "≠ executed "), score !== undefined && h("span", { class: `grade s${Math.round(score)}` }, score.toFixed(1))),
      h("span", { class: "sub" }, `${scenarioOf(unit).task} · ${personaName(unit)} · ${taskOf(unit).summary}`),
    ),
  );
}

function pages(count, page, state) {
  const step = (to, text) => h("a", { href: address(state, { unit: "", page: to + 1 }) }, text);
  return h(
    "p", { class: "pages" },
    page > 0 ? step(page - 1, "Previous page") : h("span"),
    h("span", { class: "dim" }, `page ${page + 1} of ${count}`),
    page + 1 < count ? step(page + 1, "Next page") : h("span"),
  );
}

export function showList(place, units, state) {
  if (!units.length) {
    fill(place, h("p", { class: "dim" }, "No conversation fits these filters."));
    return;
  }
  const page = pageOf(units, state);
  const shown = units.slice(page * PAGE, (page + 1) * PAGE);
  const count = Math.ceil(units.length / PAGE);
  fill(place, h("ol", null, shown.map((unit) => row(unit, state))), count > 1 && pages(count, page, state));
}
