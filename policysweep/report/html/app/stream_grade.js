// The grade of a task: its reward, the criteria behind it, and what each of them looked at.

import { folded, h } from "./dom.js";
import { bare, words } from "./words.js";

function met(value) {
  if (value === undefined) return h("span", { class: "grade absent" }, "–");
  return h("span", { class: value ? "met" : "failed" }, value ? "met" : "not met");
}

function criterion({ criterion: name, value, in_basis: counts, vacuous }) {
  const remarks = [!counts && "diagnostic", vacuous && "nothing to check", value === undefined && "not judged"].filter(Boolean).join(", ");
  return h("tr", null, h("th", { scope: "row" }, words(bare(name, "TAU2_CRITERION_"))), h("td", null, met(value)), h("td", { class: "dim" }, remarks));
}

function list(title, entries) {
  return entries?.length > 0 && [h("b", null, title), h("ul", null, entries)];
}

function action({ name, matched, replay_error: error }) {
  return h("li", null, met(Boolean(matched)), " ", h("code", null, name), error && h("span", { class: "failed" }, ` fails when it is replayed: ${error}`));
}

function information({ info, met: loosely, met_strictly: strictly }) {
  return h("li", { dir: "auto" }, met(Boolean(loosely)), ` “${info}”`, Boolean(loosely) !== Boolean(strictly) && h("span", { class: "dim" }, strictly ? " (strictly met)" : " (not as a word or number of its own)"));
}

function assertion({ assertion: text, met: holds, justification, absent_reason: why }) {
  return h("li", { dir: "auto" }, met(holds), ` ${text} `, h("span", { class: "dim" }, justification || words(bare(why, "ABSENT_REASON_"))));
}

function rewards({ reward, strict_reward: strict, absent_reason: why, ended_by_participant: ended }) {
  const told = reward === undefined ? `none: ${words(bare(why, "ABSENT_REASON_")) || "no reason stated"}` : String(reward);
  const differs = strict !== undefined && reward !== undefined && strict !== reward && ` (strictly ${strict})`;
  return [`Reward ${told}`, differs, !ended && ", since neither side ended the conversation"];
}

export function gradeTables(grade = {}) {
  return folded(
    { class: "verdicts", open: true }, rewards(grade),
    h("table", null, h("tbody", null, (grade.criteria ?? []).map(criterion))),
    list("Gold actions", grade.actions?.map(action)),
    list("What the agent had to tell", grade.information?.map(information)),
    list("Assertions", grade.assertions?.map(assertion)),
  );
}

// What stands beside a message: the information that it holds.
export function informationAt(grade = {}) {
  const found = new Map();
  for (const { info, met: holds, message_index: at } of grade.information ?? []) {
    if (holds && at !== undefined) found.set(at, [...(found.get(at) ?? []), info]);
  }
  return (index) => found.has(index) && h("p", null, `Tells ${found.get(index).map((info) => `“${info}”`).join(", ")}.`);
}
