// What a stream learnt: its entries, those that changed first, and the lesson of each task.

import { folded, h } from "./dom.js";
import { historyOf, streamName, summary, taskOf } from "./stream_data.js";
import { streamAddress } from "./stream_state.js";
import { chip } from "./stream_tasks.js";
import { counted, words } from "./words.js";

// A memory of one task is named after the unit of the task, which tells a reader nothing.
export function entryName(id, tasks) {
  const own = tasks.find(({ unit }) => id.endsWith(unit));
  return own ? `memory of task ${own.task}` : id || "(no name)";
}

export function entryLink(stream, id, tasks) {
  return h("a", { class: "entry", href: streamAddress({ stream: stream.id, entry: id }) }, entryName(id, tasks));
}

function changed(stream, entries, tasks) {
  const made = entries.filter(({ steps }) => steps.some((step) => step.position != null));
  if (!made.length) return h("p", { class: "dim" }, "No entry changed.");
  return h("ul", { class: "entries" }, made.map(({ id, header, steps }) => h(
    "li", null,
    entryLink(stream, id, tasks), " ", h("span", { class: "dim" }, counted(steps.filter((step) => step.position != null).length, "change")),
    h("div", { class: "dim", dir: "auto" }, header),
  )));
}

function untouched(stream, entries, tasks) {
  const made = entries.filter(({ steps }) => steps.every((step) => step.position == null));
  return made.length > 0 && folded(null, `Entries that did not change: ${made.length}`, h("ul", { class: "entries" }, made.map(({ id, header }) => h("li", null, entryLink(stream, id, tasks), h("div", { class: "dim", dir: "auto" }, header)))));
}

export const KINDS = { add: "added", revise: "revised", omit: "left out" };

export function lessonWords(lesson) {
  if (!lesson) return "";
  const failure = { "policy violation": "type I, the agent broke the policy", "policy gap": "type II, the policy is wrong" }[lesson.failure] ?? lesson.failure;
  return [KINDS[lesson.kind] ?? lesson.kind, failure, lesson.gap].filter(Boolean).join(" · ");
}

// The consulted entries that the stream had changed by then; the others are counted.
function consultedCell(stream, { position, consulted = [] }, entries, tasks) {
  const taught = new Set(entries.filter(({ steps }) => steps.some((step) => step.position != null && step.position < position)).map(({ id }) => id));
  const own = consulted.filter((id) => taught.has(id));
  const rest = consulted.length - own.length;
  return [
    own.flatMap((id, at) => [at ? ", " : "", entryLink(stream, id, tasks)]),
    rest > 0 && h("span", { class: "dim" }, `${own.length ? " and " : ""}${rest} as the bank was made`),
  ];
}

function lessonRow(stream, found, entries, tasks) {
  const { position, task, lesson } = found;
  return h(
    "tr", null,
    h("th", { scope: "row" }, h("a", { href: streamAddress({ stream: stream.id, task: position }) }, task), " ", h("span", { class: "dim" }, taskOf(stream, position).gap)),
    h("td", null, chip(stream.outcomes[position])),
    h("td", null, consultedCell(stream, found, entries, tasks)),
    h("td", null, lesson && lesson.kind !== "omit" && [lessonWords(lesson), lesson.entry && [": ", entryLink(stream, lesson.entry, tasks)]]),
  );
}

function lessons(stream, tasks, entries) {
  const told = tasks.filter(({ lesson, consulted }) => (lesson && lesson.kind !== "omit") || consulted?.length);
  if (!told.length) return null;
  const row = (found) => lessonRow(stream, found, entries, tasks);
  const head = ["Task", "Outcome", "Consulted", "Its feedback led to"].map((name) => h("th", { scope: "col" }, name));
  return [
    h("h3", null, "Task by task"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Task by task" }, h("table", null, h("thead", null, h("tr", null, head)), h("tbody", null, told.map(row)))),
  ];
}

function stopped(stream) {
  return (summary.failures[stream.id] ?? []).map(({ task, party, reason, message }) => h(
    "p", { class: "alert" }, h("strong", null, `Stopped at task ${task}: ${words(reason)} (${words(party)}). `), message,
  ));
}

export async function learntPage(stream) {
  const heading = h("header", null, h("h2", null, streamName(stream)), h("p", { class: "dim" }, `stream ${stream.id}${summary.rehearsal ? " · rehearsal" : ""}`), stopped(stream));
  if (!/[PFU]/.test(stream.outcomes)) return [heading, h("p", null, "No task of this stream has a record.")];
  const { entries, tasks } = await historyOf(stream);
  return [
    heading,
    entries.length > 0 ? [h("h3", null, "Entries that changed"), changed(stream, entries, tasks), untouched(stream, entries, tasks)] : h("p", null, "This method keeps no bank."),
    lessons(stream, tasks, entries),
  ];
}
