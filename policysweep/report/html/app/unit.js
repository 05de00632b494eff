// One conversation: who had it, how it ended, its scores, and the transcript.

import { category, categoryName, outcomeName } from "./data.js";
import { folded, h } from "./dom.js";
import { address } from "./state.js";
import { transcript } from "./transcript.js";
import { notesByTurn, turnNotes, verdictTables } from "./verdicts.js";
import { bare, counted, words } from "./words.js";

export function unitColumn(unit, record, content, { chosen, state }) {
  const key = category(unit);
  const { episode } = record;
  const notes = notesByTurn(record.verdicts, episode);
  const beside = (index) => notes.has(index) && turnNotes(notes.get(index), Boolean(state.alone));
  return h(
    "section", { class: `unit${chosen ? " chosen" : ""}`, "aria-label": `Conversation with ${unit.agent}` },
    h(
      "header", null,
      h("div", { class: "title" }, h("h3", null, unit.agent), h("span", { class: `chip o-${key}` }, categoryName(key)), h("a", { href: address(state, { unit: unit.id, page: "" }), class: "dim" }, "link")),
      h("p", { class: "meta" }, facts(unit, record).join(" · ")),
      alerts(episode),
      verdictTables(record.verdicts, content.goals, episode),
    ),
    transcript(unit.id, episode, beside),
    ending(episode),
  );
}

function facts(unit, { episode, attempts }) {
  const tokens = (role) => (episode.model_calls ?? [])
    .filter((call) => call.role === role)
    .reduce((sum, { usage }) => sum + (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0), 0);
  return [
    `persona ${words(unit.stance)}`,
    unit.trial && `trial ${unit.trial + 1}`,
    counted(unit.turns ?? 0, "customer turn"),
    episode.duration_seconds && `${episode.duration_seconds.toFixed(1)} s`,
    `${counted(tokens("ROLE_AGENT"), "token")} by the agent`,
    attempts > 1 && counted(attempts, "attempt"),
    ...errors(episode.errors),
    episode.rehearsal && "rehearsal",
  ].filter(Boolean);
}

function errors(counts) {
  return Object.entries(counts ?? {}).map(([name, number]) => `${words(name)} ${number}`);
}

function alerts({ end, reconciliation }) {
  const fault = bare(end?.fault, "FAULT_PARTY_");
  const reason = words(bare(end?.reason, "END_REASON_"));
  return [
    fault && h("p", { class: "alert" }, h("strong", null, `Fault of the ${words(fault)}: ${reason}. `), end.detail),
    reconciliation?.mismatch && h(
      "p", { class: "alert" },
      h("strong", null, `Declared ${outcomeName(reconciliation.declared)}, executed ${outcomeName(reconciliation.executed)}. `),
      reconciliation.explanation,
    ),
  ];
}

function list(title, entries) {
  return entries?.length > 0 && [h("b", null, title), h("ul", null, entries.map((entry) => h("li", { dir: "auto" }, entry)))];
}

function ending({ end, resolution, reconciliation }) {
  const reason = words(bare(end?.reason, "END_REASON_"));
  const writes = (reconciliation?.writes ?? []).map(({ tool_name, implied_outcome }) => `${tool_name}: ${outcomeName(implied_outcome)}`);
  return h(
    "footer", { class: "ending" },
    h("p", null, h("b", null, `End: ${reason || "not stated"}. `), end?.detail),
    resolution && folded(
      { open: true }, `Declared: ${outcomeName(resolution.outcome)}`,
      h("p", { class: "text", dir: "auto" }, resolution.description),
      list("Conditions", resolution.conditions),
      list("Next steps for the customer", resolution.customer_next_steps),
    ),
    list("Executed", writes),
  );
}
