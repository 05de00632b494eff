// A conversation turn by turn. Tool calls and results are folded; the customer's own tools, which the agent does
// not see, stand apart. Numbers in brackets are the ones that judges cite.

import { folded, foldedLater, h } from "./dom.js";
import { bare, shortened, words } from "./words.js";

const PREVIEW = 60;

// `notes` gives what stands beside a message, by its index.
export function transcript(id, episode, notes) {
  const turns = [];
  const events = [...(episode.customer_tool_events ?? [])];
  const take = (index) => {
    while (events.length && (events[0].after_message ?? 0) <= index) turns.push(privateEvent(events.shift()));
  };
  const consulted = consultedAt(episode);
  (episode.messages ?? []).forEach((message, index) => {
    take(index);
    turns.push(turn(id, message, index, consulted.get(index), notes(index)));
  });
  take(Infinity);
  return h("ol", { class: "turns" }, turns);
}

// Entries of a policy bank that an answer of the agent rests on, by the index of its message.
function consultedAt({ model_calls: calls = [] }) {
  const read = calls.filter((call) => call.role === "ROLE_AGENT" && call.consulted_spec_ids?.length);
  return new Map(read.map((call) => [call.after_message ?? 0, call.consulted_spec_ids]));
}

const KINDS = { ROLE_CUSTOMER: ["customer", "Customer"], ROLE_AGENT: ["agent", "Agent"], ROLE_TOOL: ["tool", "Tool"] };

function turn(id, message, index, consulted, notes) {
  const [kind, name] = KINDS[message.role] ?? ["other", words(message.role)];
  const said = kind === "tool" ? result(message, index) : [
    h("p", { class: "who" }, `[${index}] `, h("b", null, name)),
    consulted && h("p", { class: "dim" }, `Consulted ${consulted.join(", ")}`),
    message.content && h("div", { class: "text", dir: "auto" }, message.content),
    (message.tool_calls ?? []).map((call) => toolCall(call)),
    !message.content && !message.tool_calls?.length && h("p", { class: "failed" }, "(an empty message)"),
  ];
  return h(
    "li", { class: `turn ${kind}`, id: `turn-${id}-${index}` },
    h("div", { class: "said" }, said),
    notes && h("div", { class: "notes", role: "group", "aria-label": `Scores at [${index}]` }, notes),
  );
}

function toolCall({ name, arguments_json = "" }) {
  const preview = h("span", { class: "dim" }, ` ${shortened(arguments_json, PREVIEW)}`);
  return foldedLater([h("code", null, name || "(no name)"), preview], () => h("pre", { tabindex: 0 }, pretty(arguments_json)));
}

function status(name) {
  const known = bare(name, "TOOL_STATUS_");
  return h("span", { class: known === "OK" ? "dim" : "failed" }, known === "OK" ? "ok" : words(known) || "no status");
}

function result({ content = "", tool_name, tool_status }, index) {
  const summary = [h("span", { class: "dim" }, `[${index}] result of `), h("code", null, tool_name), " ", status(tool_status)];
  return foldedLater(summary, () => h("pre", { tabindex: 0 }, pretty(content)));
}

function privateEvent({ call = {}, result_json = "", status: found }) {
  const summary = [h("span", { class: "dim" }, "Customer's own tool: "), h("code", null, call.name), " ", status(found)];
  return h("li", { class: "turn private" }, folded(
    null, summary,
    h("p", { class: "dim" }, "The agent does not see this."),
    h("pre", { tabindex: 0 }, pretty(call.arguments_json ?? "")),
    h("pre", { tabindex: 0 }, pretty(result_json)),
  ));
}

// Indented when it is JSON, verbatim when it is not.
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text || "(empty)";
  }
}
