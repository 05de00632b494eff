// The form above the list. Each control is named after the part of the state that it sets.

import { category, categoryName, index, outcomes, agents, UNSCORED } from "./data.js";
import { h } from "./dom.js";
import { FILTERS } from "./state.js";
import { shortened, words } from "./words.js";

function choice(name, label, options, wide = false) {
  const all = [["", "All"], ...options].map(([value, text]) => h("option", { value }, text));
  return h("label", { class: wide && "wide" }, label, h("select", { name }, all));
}

function check(name, label) {
  return h("label", { class: "check wide" }, h("input", { type: "checkbox", name, value: "1" }), label);
}

function present(values) {
  return [...new Set(values)].sort();
}

function faults() {
  const names = present(index.units.map((unit) => unit.fault).filter(Boolean));
  return [["NONE", "None: a clean end"], ...names.map((name) => [name, words(name)])];
}

function stances() {
  const found = present(index.units.map((unit) => unit.stance));
  return found.length > 1 && choice("stance", "Agent's persona", found.map((name) => [name, words(name)]));
}

function scores() {
  if (!index.dimensions.length) return null;
  const bound = (name, label) =>
    h("label", null, label, h("input", { name, type: "number", min: 1, max: 5, step: 0.1, inputmode: "decimal" }));
  const dimensions = index.dimensions.map(({ key, title }) => h("option", { value: key }, title));
  return h(
    "fieldset", { class: "wide range" },
    h("label", null, "Score on", h("select", { name: "score" }, dimensions)),
    bound("min", "from"),
    bound("max", "to"),
  );
}

function order() {
  const options = [["", "Scenario"], ["low", "Lowest score first"], ["high", "Highest score first"]];
  const made = options.map(([value, text]) => h("option", { value }, text));
  return index.dimensions.length > 0 && h("label", { class: "wide" }, "Order", h("select", { name: "sort" }, made));
}

export function buildFilters(form, onChange) {
  const seen = new Set(index.units.map(category));
  const tasks = Object.entries(index.tasks).map(([id, { summary }]) => [id, shortened(`${id}: ${summary}`, 90)]);
  form.append(
    choice("agent", "Agent", agents.map((name) => [name, name])),
    choice("outcome", "Outcome", [...outcomes.keys(), UNSCORED].filter((key) => seen.has(key)).map((key) => [key, categoryName(key)])),
    choice("task", "Task", tasks, true),
    choice("persona", "Customer", Object.entries(index.personas).map(([id, name]) => [id, name || id])),
    choice("fault", "Fault", faults()),
    stances() || "",
    scores() || "",
    order() || "",
    check("split", "Agents decided the case differently"),
    check("mismatch", "Declared and executed contradict each other"),
    h("button", { type: "reset", class: "wide" }, "Clear filters"),
  );
  form.addEventListener("input", () => onChange(readFilters(form)));
  form.addEventListener("reset", () => onChange(Object.fromEntries(FILTERS.map((name) => [name, ""]))));
  form.addEventListener("submit", (event) => event.preventDefault());
}

function readFilters(form) {
  const found = new FormData(form);
  return Object.fromEntries(FILTERS.map((name) => [name, found.get(name) ?? ""]));
}

export function showFilters(form, state) {
  for (const control of form.elements) {
    if (!control.name) continue;
    if (control.type === "checkbox") control.checked = Boolean(state[control.name]);
    else if (control.name === "score") control.value = state.score || control.options[0].value;
    else control.value = state[control.name];
  }
}
