// The tasks of a stream in their order, each with its outcome and what its feedback led to.

import { fill, h } from "./dom.js";
import { baseline, LESSONS, OUTCOMES, orderOf, taskOf } from "./stream_data.js";
import { streamAddress } from "./stream_state.js";

export function chip(letter) {
  const [kind, text] = OUTCOMES[letter] ?? OUTCOMES["."];
  return h("span", { class: `chip r-${kind}` }, text);
}

// How a task went against no memory: won, lost, or the same.
export function against(own, other) {
  if (own === "P" && other === "F") return h("span", { class: "won" }, "won");
  if (own === "F" && other === "P") return h("span", { class: "lost" }, "lost");
  return null;
}

const KINDS = { sisters: "sister", parents: "parent", controls: "control", other_originals: "" };

function row(stream, position, state, other) {
  const task = taskOf(stream, position);
  const outcome = stream.outcomes[position];
  const lesson = LESSONS[stream.lessons[position]];
  const here = state.task === position;
  const kind = KINDS[task.kind];
  return h(
    "li", { class: kind && `k-${task.kind}` },
    h(
      "a", { href: streamAddress({ stream: stream.id, task: position, beside: state.beside }), "aria-current": here && "true" },
      h("span", null, chip(outcome), " ", h("b", null, task.id), " ", kind && h("span", { class: "dim" }, [kind, task.gap].filter(Boolean).join(" "))),
      h("span", null, against(outcome, other?.outcomes[position])),
      h("span", { class: "sub" }, lesson && h("span", { class: `lesson-${stream.lessons[position]}` }, `${lesson} · `), task.about),
    ),
  );
}

function tally(stream, other) {
  const count = (letter) => [...stream.outcomes].filter((found) => found === letter).length;
  const pairs = other ? [...stream.outcomes].map((own, position) => own + other.outcomes[position]) : [];
  const told = ["P", "F", "U", "."].filter((letter) => count(letter)).map((letter) => `${count(letter)} ${OUTCOMES[letter][1]}`);
  if (other) told.push(`${pairs.filter((pair) => pair === "PF").length} won and ${pairs.filter((pair) => pair === "FP").length} lost against no memory`);
  return told.join(", ");
}

export function showTasks(place, stream, state) {
  const other = baseline(stream);
  fill(
    place,
    h("p", { id: "found", role: "status" }, tally(stream, other)),
    h("p", null, h("a", { href: streamAddress({ stream: stream.id }), "aria-current": state.task === null && state.entry === null && "true" }, "What this stream learnt")),
    h("ol", { id: "hits" }, orderOf(stream).map((_, position) => row(stream, position, state, other))),
  );
  place.querySelector("li a[aria-current]")?.scrollIntoView({ block: "nearest" });
}
