// How an entry came to read as it does: each change with the task that taught it, why, and the diff.

import { h } from "./dom.js";
import { historyOf, streamName, taskOf } from "./stream_data.js";
import { diffBlock } from "./stream_diff.js";
import { entryName, lessonWords } from "./stream_learnt.js";
import { streamAddress } from "./stream_state.js";
import { chip } from "./stream_tasks.js";

function step(stream, found) {
  if (found.text !== undefined) {
    return h("li", null, h("h3", null, "As the bank was made"), h("pre", { tabindex: 0, dir: "auto" }, found.text));
  }
  const { position } = found;
  const task = position == null ? null : taskOf(stream, position);
  return h(
    "li", null,
    h("h3", null, `Revision ${found.revision}: `, task ? [h("a", { href: streamAddress({ stream: stream.id, task: position }) }, `task ${task.id}`), " ", chip(stream.outcomes[position])] : "unknown task"),
    h("p", { class: "dim" }, [lessonWords(found), found.reward !== undefined && `reward ${found.reward}`, task?.about].filter(Boolean).join(" · ")),
    found.rationale && h("p", { dir: "auto" }, found.rationale),
    diffBlock(found.diff ?? ""),
  );
}

// Tasks in which the entry was consulted, with the revision of the steps that stood then.
function uses(stream, id, tasks) {
  const used = tasks.filter(({ consulted }) => consulted?.includes(id));
  if (!used.length) return h("p", { class: "dim" }, "No task of this stream consulted it.");
  return h("p", null, "Consulted in ", used.flatMap(({ position, task }, at) => [
    at ? ", " : "", h("a", { href: streamAddress({ stream: stream.id, task: position }) }, `task ${task}`), " ", chip(stream.outcomes[position]),
  ]), ".");
}

export async function entryPage(stream, id) {
  const { entries, tasks } = await historyOf(stream);
  const entry = entries.find((each) => each.id === id);
  if (!entry) return h("p", null, `The bank of this stream has no entry ${id}.`);
  return [
    h(
      "header", null,
      h("p", { class: "steps" }, h("a", { href: streamAddress({ stream: stream.id }) }, "All that this stream learnt")),
      h("h2", { dir: "auto" }, entryName(id, tasks)),
      h("p", { class: "dim" }, streamName(stream)),
      uses(stream, id, tasks),
    ),
    h("ol", { class: "evolution" }, entry.steps.map((each) => step(stream, each))),
    h("h3", null, "As it reads at the end"),
    h("pre", { tabindex: 0, dir: "auto" }, entry.text),
  ];
}
