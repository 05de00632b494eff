"""A scenario in plain text, as each of its readers sees it.

* The agent sees the policy, its brief and what the customer writes.
* The customer (a model that plays one) sees its persona and its own brief.
* The designer sees all: the task, the clauses behind it with their readings, the outcomes that can be
  defended, and the truth that an inspection would find.

What a view does not take as an argument it cannot show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policysweep.v1 import scenario_pb2, world_pb2

Json = Mapping[str, Any]


def _block(title: str, text: str) -> str:
    return f"== {title} ==\n{text.strip()}\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def agent_view(policy: scenario_pb2.Policy, case_brief: str, opening: str) -> str:
    """What the agent gets before it answers for the first time."""
    related = [_block(f"Related policy {at}", each.text) for at, each in enumerate(policy.related, start=1)]
    return "\n".join(
        [
            _block("Policy", policy.primary.text),
            *related,
            _block("Case brief", case_brief),
            _block("Customer writes", opening),
        ]
    )


def customer_view(persona: scenario_pb2.Persona, brief: scenario_pb2.CustomerBrief, opening: str) -> str:
    """What the model gets that plays the customer."""
    return "\n".join(
        [
            _block("Persona", _persona(persona)),
            _block("Tells freely", brief.basic_info),
            _block("Keeps private until asked", brief.private_info),
            _block("Behavior", brief.behavior),
            _block("Opening", opening),
        ]
    )


def _persona(persona: scenario_pb2.Persona) -> str:
    traits = ", ".join(f"{trait} {persona.personality[trait]}" for trait in sorted(persona.personality))
    facts = {
        "Id": persona.persona_id,
        "Age": persona.age_range,
        "Location": persona.location,
        "Gender": persona.gender,
        "Job": persona.job_sector,
        "Income": persona.income_range,
        "Register": persona.language_style,
        "Communication": persona.communication_style,
        "Traits (1 to 5)": traits,
    }
    listed = "\n".join(f"{key + ':':<17}{value}" for key, value in facts.items())
    return f"{persona.name}\n{persona.description}\n\n{listed}"


def designer_view(
    scenario: scenario_pb2.Scenario,
    world: world_pb2.OrderWorld | None,
    design: Json | None,
    clauses: Mapping[str, Json],
) -> str:
    """Everything. `design` is the task's authored file, `clauses` maps ids to clauses; both may be empty."""
    parts = [
        _block(
            "Scenario",
            f"{scenario.scenario_id} (task {scenario.task_id}, source {scenario.source or 'not given'})",
        )
    ]
    parts.append(_block("Task", _task(scenario.task)))
    if design is not None:
        parts.append(_block("Clauses", "\n\n".join(_clause(clauses[clause]) for clause in design["clauses"])))
        outcomes = (f"{each['outcome']}: {each['reason']}" for each in design["plausible_outcomes"])
        parts.append(_block("Plausible outcomes", _bullets(outcomes)))
        parts.append(_block("Private markers", _bullets(design["private_markers"])))
    parts.append(_block("Truth", _truth(world) if world else "This task has no order world."))
    parts.append(customer_view(scenario.persona, scenario.customer_brief, scenario.first_customer_message))
    parts.append(agent_view(scenario.policy, scenario.case_brief, scenario.first_customer_message))
    return "\n".join(parts)


def _task(task: scenario_pb2.Task) -> str:
    return (
        f"{task.summary}\n\n{task.detail}\n\nReason: {task.reason}\n"
        f"Complexity: {task.complexity_level} ({task.complexity_ordinal})\n"
        f"Ambiguity: {', '.join(task.all_ambiguity_types)}; stratum {task.stratum_label}\n"
        f"Policy issues:\n{_bullets(task.related_policy_issues)}"
    )


def _clause(clause: Json) -> str:
    return (
        f"{clause['clause_id']} ({clause['kind']}; {clause['source']}, {clause['heading']})\n"
        f'"{clause["quote"]}"\n{clause["issue"]}\nReadings:\n{_bullets(clause["readings"])}\n'
        f"Pulls towards: {', '.join(clause['pulls_towards'])}"
    )


def _truth(world: world_pb2.OrderWorld) -> str:
    names = {item.item_id: item.name for item in world.order.items}
    found = []
    for truth in world.inspection_truth:
        lost = f" Missing: {', '.join(truth.accessories_missing)}." if truth.accessories_missing else ""
        found.append(f"{truth.item_id} {names[truth.item_id]}: {truth.condition}. {truth.notes}{lost}")
    gold = world.gold_facts
    shaded = gold.what_customer_may_misstate or "nothing"
    return f"{_bullets(found)}\nTrue reason: {gold.reason_truth}\nThe customer may misstate: {shaded}"
