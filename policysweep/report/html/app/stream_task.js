// A task of a stream: what it is about, and the conversation with its grade and lesson, beside another method's.

import { folded, foldedLater, h } from "./dom.js";
import { armOf, baseline, domainData, historyOf, index, orderOf, recordOf, sameCase, streamName, taskOf } from "./stream_data.js";
import { diffBlock } from "./stream_diff.js";
import { gradeTables, informationAt } from "./stream_grade.js";
import { entryLink, KINDS } from "./stream_learnt.js";
import { streamAddress } from "./stream_state.js";
import { chip } from "./stream_tasks.js";
import { transcript } from "./transcript.js";
import { bare, counted, words } from "./words.js";

function paragraphs(pairs) {
  return pairs.filter(([, text]) => text).map(([label, text]) => h("p", { dir: "auto" }, h("b", null, `${label}: `), text));
}

function backdrop(task, gap) {
  const user = task.user_scenario ?? {};
  const actions = task.criteria?.gold?.actions ?? [];
  return h(
    "div", { class: "backdrop" },
    folded(null, "What the user knows and does", paragraphs([
      ["Persona", user.persona], ["Reason", user.reason_for_call], ["Knows", user.known_info], ["Does not know", user.unknown_info], ["Instructions", user.task_instructions],
    ])),
    actions.length > 0 && foldedLater("Gold actions", () => h("ol", null, actions.map(({ name, arguments_json, support }) => h(
      "li", null, h("code", null, `${name}(${arguments_json ?? ""})`), support === "TAU2_SUPPORT_CLARIFICATION" && h("span", { class: "dim" }, " allowed by the clarification alone"),
    )))),
    gap && folded(null, `The policy gap ${gap.gap_id}`, paragraphs([["Written", gap.policy_sentence], ["Meant", gap.clarification]])),
    task.developer_explanation && folded(null, "What the feedback explains", h("p", { dir: "auto" }, task.developer_explanation)),
  );
}

function steps(stream, state) {
  const length = orderOf(stream).length;
  const link = (position, text) => position >= 0 && position < length && h("a", { href: streamAddress({ ...state, stream: stream.id, task: position }) }, text);
  return h("nav", { class: "steps", "aria-label": "Tasks" }, h("a", { href: streamAddress({ stream: stream.id }) }, "What this stream learnt"), link(state.task - 1, "Previous"), link(state.task + 1, "Next"));
}

function besides(stream, state, other) {
  const others = sameCase(stream).filter((each) => each !== stream);
  if (!others.length) return null;
  const option = (value, text) => h("option", { value, selected: value === String(other?.arm ?? "alone") }, text);
  return h("label", { class: "controls" }, "Beside ", h(
    "select", { change: (event) => { location.hash = streamAddress({ ...state, stream: stream.id, beside: event.target.value }); } },
    option("alone", "nothing"), others.map((each) => option(String(each.arm), armOf(each).title)),
  ));
}

function chosenOther(stream, state) {
  if (state.beside === "alone") return undefined;
  return state.beside ? sameCase(stream).find((each) => each !== stream && String(each.arm) === state.beside) : baseline(stream);
}

function facts({ episode, grade, attempts, revision }) {
  const tokens = (role) => (episode.model_calls ?? []).filter((call) => call.role === role)
    .reduce((sum, { usage }) => sum + (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0), 0);
  return [
    counted(episode.turns ?? 0, "user turn"),
    episode.duration_seconds && `${episode.duration_seconds.toFixed(1)} s`,
    `${counted(tokens("ROLE_AGENT"), "token")} by the agent`,
    attempts > 1 && counted(attempts, "attempt"),
    ...Object.entries(episode.errors ?? {}).map(([name, number]) => `${words(name)} ${number}`),
    (episode.rehearsal || grade?.rehearsal || revision?.rehearsal) && "rehearsal",
  ].filter(Boolean).join(" · ");
}

function consulted(stream, episode, tasks) {
  const ids = [...new Set((episode.model_calls ?? []).flatMap((call) => call.consulted_spec_ids ?? []))];
  return ids.length > 0 && h("p", { class: "meta" }, "Consulted ", ids.flatMap((id, at) => [at ? ", " : "", entryLink(stream, id, tasks)]));
}

function lesson(stream, { revision, missing_feedback: missing }, tasks) {
  if (missing) {
    return h("p", { class: "alert" }, h("strong", null, `No lesson: ${words(bare(missing.party, "FAULT_PARTY_"))}, ${words(missing.reason)}. `), missing.message);
  }
  if (!revision) return null;
  const kind = words(bare(revision.kind, "REVISION_KIND_"));
  const about = [words(bare(revision.failure_type, "FAILURE_TYPE_")), words(bare(revision.gap_class, "GAP_CLASS_"))].filter((text) => text && text !== "unspecified").join(" · ");
  return folded(
    { class: "lesson", open: kind !== "omit" }, `Its feedback: ${KINDS[kind] ?? kind}`,
    revision.capability_id && h("p", null, entryLink(stream, revision.capability_id, tasks)),
    about && h("p", { class: "dim" }, about),
    h("p", { dir: "auto" }, revision.rationale ?? ""),
    revision.diff && diffBlock(revision.diff),
  );
}

function ending(end) {
  const fault = bare(end?.fault, "FAULT_PARTY_");
  return h("footer", { class: "ending" }, h("p", null, h("b", null, `End: ${words(bare(end?.reason, "END_REASON_")) || "not stated"}. `), end?.detail, fault && fault !== "UNSPECIFIED" && ` Fault of the ${words(fault)}.`));
}

async function column(stream, position, chosen) {
  const title = armOf(stream).title;
  const outcome = stream.outcomes[position];
  const heading = h("div", { class: "title" }, h("h3", null, title), chip(outcome), !chosen && h("a", { class: "dim", href: streamAddress({ stream: stream.id, task: position }) }, "open"));
  const label = `Conversation of ${title}`;
  if (outcome === ".") return h("section", { class: "unit", "aria-label": label }, h("header", null, heading, h("p", { class: "dim" }, "This task has no record yet.")));
  const [record, { tasks }] = await Promise.all([recordOf(stream, position), historyOf(stream)]);
  return h(
    "section", { class: `unit${chosen ? " chosen" : ""}`, "aria-label": label },
    h("header", null, heading, h("p", { class: "meta" }, facts(record)), consulted(stream, record.episode, tasks), gradeTables(record.grade), lesson(stream, record, tasks)),
    transcript(record.task.unit_id, record.episode, informationAt(record.grade)),
    ending(record.episode.end),
  );
}

export async function taskPage(stream, state) {
  const task = taskOf(stream, state.task);
  if (!task.id) return h("p", null, `This stream has no task at position ${state.task}.`);
  const other = chosenOther(stream, state);
  const columns = [column(stream, state.task, true), other && column(other, state.task, false)].filter(Boolean);
  const [known, ...made] = await Promise.all([domainData(stream), ...columns]);
  const about = [task.kind === "other_originals" ? "original" : words(task.kind).replace(/s$/, ""), task.gap && `gap ${task.gap}`, task.family !== task.id && `family of ${task.family}`, `place ${state.task + 1} of ${orderOf(stream).length}`];
  return [
    h(
      "header", null,
      steps(stream, state),
      h("h2", null, `Task ${task.id} of ${armOf(stream).domain}`),
      h("p", { class: "dim" }, `${streamName(stream)} · ${about.filter(Boolean).join(" · ")}`),
      h("p", { dir: "auto" }, task.about),
      backdrop(known.tasks[task.id] ?? {}, known.gaps[task.gap]),
      index.arms.length > 1 && besides(stream, state, other),
    ),
    h("div", { class: "columns", tabindex: 0, role: "group", "aria-label": "Conversations side by side" }, made),
  ];
}
