// What a scenario is about, folded: what is open in the policy, who the customer is, what the design says.

import { folded, h } from "./dom.js";

function paragraphs(pairs) {
  return pairs.filter(([, text]) => text).map(([label, text]) => h("p", { dir: "auto" }, label && h("b", null, `${label}: `), text));
}

function open(task) {
  const issues = task.related_policy_issues ?? [];
  return issues.length > 0 && folded(null, "What is open in the policy", h("ul", null, issues.map((issue) => h("li", { dir: "auto" }, issue))));
}

function customer(persona, brief) {
  const traits = Object.entries(persona.personality ?? {}).map(([trait, score]) => `${trait} ${score}`).join(", ");
  return folded(null, `The customer: ${persona.name || persona.persona_id}`, paragraphs([
    ["", persona.description],
    ["Register", [persona.language_style, persona.communication_style].filter(Boolean).join("; ")],
    ["Traits, 1 to 5", traits],
    ["Tells freely", brief.basic_info],
    ["Keeps private until asked", brief.private_info],
    ["Strategy", brief.behavior],
  ]));
}

export function backdrop({ scenario, goals }) {
  const task = scenario.task ?? {};
  const listed = (goals ?? []).map(({ text, explicit }) => h("li", { dir: "auto" }, text, explicit ? "" : h("span", { class: "dim" }, " (implied)")));
  return h(
    "div", { class: "backdrop" },
    open(task),
    customer(scenario.persona ?? {}, scenario.customer_brief ?? {}),
    listed.length > 0 && folded(null, "The customer's goals", h("ol", null, listed)),
    folded(null, "The design of the task", paragraphs([["Narrative", task.detail], ["Reason", task.reason], ["What the agent is told", scenario.case_brief]])),
  );
}
