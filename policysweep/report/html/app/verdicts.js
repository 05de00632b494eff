// What the judges found: tables over the transcript, and notes beside the turns that a score is about or cites.

import { index, outcomeName } from "./data.js";
import { cites } from "./cites.js";
import { folded, h } from "./dom.js";
import { bare, grade, words } from "./words.js";

function metric(key) {
  return index.metrics[key] ?? { title: words(key), dimension: "" };
}

function several(verdicts) {
  return new Set(verdicts.map(({ judge }) => judge)).size > 1;
}

export function mark({ value, absent_reason }) {
  if (value === undefined) return h("span", { class: "grade absent", title: words(bare(absent_reason, "ABSENT_REASON_")) }, "–");
  return h("span", { class: `grade s${Math.round(value)}` }, grade(value));
}

// Why there is no score, or what it rests on.
function grounds(score) {
  const why = score.value === undefined && [words(bare(score.absent_reason, "ABSENT_REASON_")), score.absent_detail].filter(Boolean).join(": ");
  const low = score.scale_mass !== undefined && score.scale_mass < index.min_scale_mass && `Only ${(100 * score.scale_mass).toFixed(0)}% of the probability was on the scale.`;
  const spread = score.spread !== undefined && `Repeated samples spread by ${score.spread.toFixed(2)}.`;
  return [why, score.justification, low, spread].filter(Boolean).join(" ");
}

// Notes by message index: {score, title, text, cited}.
export function notesByTurn(verdicts, episode) {
  const notes = new Map();
  const last = (episode.messages ?? []).length - 1;
  const note = (at, entry) => at <= last && notes.set(at, [...(notes.get(at) ?? []), entry]);
  const named = several(verdicts);
  for (const { judge, verdict } of verdicts) {
    const prefix = named ? `${judge}: ` : "";
    for (const score of verdict.scores ?? []) {
      const entry = { score, title: `${prefix}${metric(score.metric).title}`, text: grounds(score) };
      if (score.message_index !== undefined) note(score.message_index, { ...entry, cited: false });
      else for (const at of cites(score.justification)) note(at, { ...entry, cited: true });
    }
  }
  for (const list of notes.values()) list.sort((a, b) => a.cited - b.cited);
  return notes;
}

const FEW = 3;

// Beside the turn there is room for the grounds of a few; in a column all fold into one line of grades.
export function turnNotes(notes, alone) {
  const made = notes.map((note) => gradeNote(note, notes.length <= FEW));
  return alone ? made : folded(null, notes.map(({ score }) => mark(score)), made);
}

function gradeNote({ score, title, text, cited }, open) {
  const summary = [mark(score), " ", title, cited && h("span", { class: "dim" }, " cites this")];
  return text ? folded({ open }, summary, h("p", { dir: "auto" }, text)) : h("div", null, summary);
}

function turnMeans(scores) {
  const byMetric = new Map();
  for (const score of scores) {
    const key = JSON.stringify([score.metric, score.subject]);
    byMetric.set(key, [...(byMetric.get(key) ?? []), score]);
  }
  return [...byMetric.values()].map((group) => {
    const values = group.map(({ value }) => value).filter((value) => value !== undefined);
    const mean = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
    const text = `Mean of ${values.length} of ${group.length} turns; each stands beside its turn.`;
    return { ...group[0], value: mean, justification: text, absent_detail: "" };
  });
}

function rows(verdict) {
  const scores = verdict.scores ?? [];
  const whole = scores.filter((score) => score.message_index === undefined);
  return [...whole, ...turnMeans(scores.filter((score) => score.message_index !== undefined))];
}

function row(score) {
  const customer = score.subject === "ROLE_CUSTOMER" && h("span", { class: "dim" }, " (the customer)");
  return h("tr", null, h("td", null, mark(score)), h("th", { scope: "row" }, metric(score.metric).title, customer), h("td", { dir: "auto" }, grounds(score)));
}

function judgeTable(scores) {
  const dimensions = [...new Set(scores.map((score) => metric(score.metric).dimension))];
  const title = (key) => index.dimensions.find((dimension) => dimension.key === key)?.title ?? words(key);
  return h("table", null, dimensions.map((key) => h(
    "tbody", null,
    h("tr", null, h("th", { colspan: 3, scope: "rowgroup" }, title(key))),
    scores.filter((score) => metric(score.metric).dimension === key).map(row),
  )));
}

function goalList(verdict, goals) {
  const met = ({ met: found, absent_reason }) => (found === undefined ? words(bare(absent_reason, "ABSENT_REASON_")) : found ? "met" : "not met");
  return (verdict.goals ?? []).map((found) => {
    const text = goals?.[found.goal_index ?? 0]?.text ?? `goal ${(found.goal_index ?? 0) + 1}`;
    return h("li", { dir: "auto" }, h("b", null, met(found)), `: ${text} `, h("span", { class: "dim" }, found.justification));
  });
}

function outcomeSeen({ outcome }, episode) {
  if (!outcome) return null;
  const seen = outcome.absent_reason ? words(bare(outcome.absent_reason, "ABSENT_REASON_")) : outcomeName(outcome.outcome);
  const differs = !outcome.absent_reason && (outcome.outcome ?? "OUTCOME_UNSPECIFIED") !== (episode.outcome ?? "OUTCOME_UNSPECIFIED");
  return h("p", { class: differs && "alert" }, h("b", null, `Outcome as the judge sees it: ${seen}. `), outcome.justification);
}

export function verdictTables(verdicts, goals, episode) {
  const judges = [...new Set(verdicts.map(({ judge }) => judge))];
  return judges.map((judge) => {
    const own = verdicts.filter((record) => record.judge === judge).map(({ verdict }) => verdict);
    const met = own.flatMap((verdict) => goalList(verdict, goals));
    const marked = own.some(({ rehearsal }) => rehearsal) ? " (rehearsal)" : "";
    return folded(
      { class: "verdicts" }, `Scores by ${judge}${marked}`,
      own.map((verdict) => outcomeSeen(verdict, episode)),
      judgeTable(own.flatMap(rows)),
      met.length > 0 && [h("b", null, "The customer's goals"), h("ul", null, met)],
    );
  });
}
