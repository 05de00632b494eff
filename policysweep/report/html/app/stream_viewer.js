// The viewer: a stream and its tasks on one side; what it learnt, an entry or a task on the other.

import { fill, h } from "./dom.js";
import { armOf, index, streamById } from "./stream_data.js";
import { streamAddress } from "./stream_state.js";
import { entryPage } from "./stream_entry.js";
import { learntPage } from "./stream_learnt.js";
import { taskPage } from "./stream_task.js";
import { showTasks } from "./stream_tasks.js";
import { walkWithArrows } from "./walk.js";

const place = (id) => document.getElementById(id);
let built = false;
let shown = "";
let wanted = ""; // What arrives late must not replace what was asked for since.

function build() {
  walkWithArrows(place("tasks-of-stream"));
  place("choice").addEventListener("input", choose);
  place("choice").addEventListener("submit", (event) => event.preventDefault());
  built = true;
}

// Another method, seed or trial; the task stays where it is if the order is the same.
function choose() {
  const found = new FormData(place("choice"));
  const current = streamById.get(place("choice").dataset.stream);
  const arm = Number(found.get("arm"));
  const trial = Number(found.get("trial"));
  const seed = Number(found.get("seed"));
  const next = index.streams.find((stream) => stream.arm === arm && stream.trial === trial && stream.seed === seed);
  const keep = place("choice").dataset.task !== "" && armOf(next).domain === armOf(current).domain && next.seed === current.seed;
  location.hash = streamAddress({ stream: next.id, task: keep ? Number(place("choice").dataset.task) : null });
}

function selectOf(name, label, options, value, wide = false) {
  const made = options.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text));
  return h("label", { class: wide && "wide" }, label, h("select", { name }, made));
}

function showChoice(form, stream, state) {
  const several = new Set(index.arms.map(({ domain }) => domain)).size > 1;
  const arms = index.arms.map(({ domain, title }, position) => [position, several ? `${domain}: ${title}` : title]);
  const seeds = [...new Set(index.streams.map(({ seed }) => seed))].map((seed) => [seed, seed]);
  const trials = [...new Set(index.streams.map(({ trial }) => trial))].map((trial) => [trial, trial + 1]);
  form.dataset.stream = stream.id;
  form.dataset.task = state.task ?? "";
  const focused = document.activeElement?.name;
  fill(form, selectOf("arm", "Method", arms, stream.arm, true), selectOf("seed", "Seed", seeds, stream.seed), selectOf("trial", "Trial", trials, stream.trial));
  if (focused) form.elements[focused]?.focus();
}

function content(stream, state) {
  if (state.entry !== null) return entryPage(stream, state.entry);
  return state.task === null ? learntPage(stream) : taskPage(stream, state);
}

export async function showStreams(state) {
  if (!built) build();
  const stream = state.stream ? streamById.get(state.stream) : index.streams[0];
  place("viewer").classList.toggle("reading", Boolean(state.stream));
  if (!stream) {
    fill(place("case"), h("p", null, state.stream ? `There is no stream ${state.stream} in this report.` : "This run has no streams."));
    return;
  }
  showChoice(place("choice"), stream, state);
  showTasks(place("tasks-of-stream"), stream, state);
  const key = JSON.stringify([stream.id, state.entry, state.task, state.beside]);
  if (key === shown) return;
  const first = shown === "";
  wanted = shown = key;
  fill(place("case"), h("p", { class: "dim", role: "status" }, "Loading…"));
  const made = await content(stream, state).catch((error) => {
    shown = "";
    return h("p", { class: "alert", role: "alert" }, error.message);
  });
  if (wanted !== key) return;
  fill(place("case"), h("p", { class: "steps" }, h("a", { class: "back", href: "#streams" }, "Back to the streams")), made);
  if (!first && state.stream) place("case").focus({ preventScroll: true });
  scrollTo(0, 0);
}
