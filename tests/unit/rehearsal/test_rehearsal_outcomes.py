"""The scripts against the real order world: every tenth built-in scenario, so each task once."""

from __future__ import annotations

from collections import Counter
from functools import cache

import orjson
import pytest

from policysweep.datasets.load import Dataset, load
from policysweep.domains.returns.environment import ReturnsEnvironment, agent_tools, customer_tools
from policysweep.domains.returns.resolution import resolution_options, resolution_tool
from policysweep.models.tools import openai_tools
from policysweep.v1 import episode_pb2, scenario_pb2

from .support import Json, arguments, ask, assistant, result, system, user

AGENTS = ("rehearsal-strict", "rehearsal-fair", "rehearsal-lenient", "rehearsal-cautious")
PERSONAS = ("DIRECT", "FAIR", "AGREEABLE", "HELPFUL", "VERY_HELPFUL")
MOST_STEPS = 60


def _plain(tools: object) -> list[Json]:
    listed: list[Json] = orjson.loads(orjson.dumps(tools))
    return listed


AGENT_TOOLS = _plain(openai_tools([*agent_tools(), resolution_tool(resolution_options())]))
CUSTOMER_TOOLS = _plain(openai_tools(customer_tools()))


@cache
def dataset() -> Dataset:
    return load("builtin")


def customer_prompt(scenario: scenario_pb2.Scenario, order_id: str) -> str:
    persona, brief = scenario.persona, scenario.customer_brief
    traits = "\n".join(f"{trait}: {score}" for trait, score in sorted(persona.personality.items()))
    return (
        f"## Persona\nName: {persona.name}\nLanguage style: {persona.language_style}\n{traits}\n\n"
        f"## What you know and share freely\nYour order number is {order_id}.\n{brief.basic_info}\n\n"
        f"## What you share only when asked\n{brief.private_info}\n\n## How you behave\n{brief.behavior}\n"
    )


class Conversation:
    """One scenario played between the two scripts over the order world."""

    def __init__(self, number: int, model: str) -> None:
        scenario = dataset().scenarios[number]
        world = dataset().worlds[scenario.task_id]
        self.world = ReturnsEnvironment(world, scenario.policy, scenario.persona.name)
        self.model = model
        persona = PERSONAS[number % len(PERSONAS)]
        opening = f"My order number is {world.order.order_id}. {scenario.first_customer_message}"
        self.agent = [system(f"## How you are asked to behave\n\n{persona}: so."), user(opening)]
        self.customer = [
            system("You play a customer."),
            user(f"(Write your first message.)\n\n{customer_prompt(scenario, world.order.order_id)}"),
            {"role": "assistant", "content": opening},
        ]
        self.statements = 1
        self.statuses: Counter[int] = Counter()
        self.outcome = ""
        self.texts: list[str] = []

    def play(self) -> Conversation:
        for step in range(MOST_STEPS):
            if self._agent_step(step) and self._customer_step(step):
                return self
            if self.outcome:
                return self
        raise AssertionError("the conversation does not end")

    def _agent_step(self, step: int) -> bool:
        """One answer of the agent; true when it spoke to the customer."""
        draft = ask(self.agent, self.model, tools=AGENT_TOOLS, seed=1, temperature=0)
        self.agent.append(assistant(draft, f"a{step}-"))
        for call, use in zip(self.agent[-1].get("tool_calls", ()), draft.tool_uses, strict=True):
            if use.name == "declare_resolution":
                self.outcome = arguments(draft)["resolution_type"]
                return False
            wanted = episode_pb2.ToolCall(id=call["id"], name=use.name, arguments_json=use.arguments or "")
            answer = self.world.call_agent_tool(wanted, statements=self.statements)
            self.statuses[answer.status] += 1
            self.agent.append({"role": "tool", "tool_call_id": call["id"], "content": answer.content})
        if draft.text:
            self.customer.append(user(draft.text))
        return bool(draft.text)

    def _customer_step(self, step: int) -> bool:
        """The customer's answer, look-ups included; true when it left."""
        for look in range(3):
            draft = ask(self.customer, "rehearsal-customer", tools=CUSTOMER_TOOLS, seed=1, temperature=0)
            self.customer.append(assistant(draft, f"u{step}-{look}-"))
            for use in draft.tool_uses:
                if use.name == "withdraw_from_conversation":
                    self.outcome = "USER_ABORT"
                    return True
                self.customer.append(result(f"u{step}-{look}-0", {"status": "ok"}))
            if draft.text:
                self.agent.append(user(draft.text))
                self.texts.append(draft.text)
                self.statements += 1
                return False
        raise AssertionError("the customer never speaks")


@pytest.fixture(scope="module")
def played() -> dict[str, list[Conversation]]:
    numbers = range(0, 400, 10)
    return {model: [Conversation(n + n // 10 % 10, model).play() for n in numbers] for model in AGENTS}


def test_every_disposition_reaches_many_outcomes(played: dict[str, list[Conversation]]) -> None:
    for model, conversations in played.items():
        outcomes = Counter(conversation.outcome for conversation in conversations)
        assert len(outcomes) >= 4, (model, outcomes)
        assert max(outcomes.values()) <= 0.7 * len(conversations), (model, outcomes)


def test_dispositions_seldom_all_agree_and_are_not_independent(played: dict[str, list[Conversation]]) -> None:
    rows = list(zip(*([c.outcome for c in played[model]] for model in AGENTS), strict=True))
    agree = sum(len(set(row)) == 1 for row in rows) / len(rows)
    chance = 0.0
    for outcome in {outcome for row in rows for outcome in row}:
        shares = [sum(row[at] == outcome for row in rows) / len(rows) for at in range(len(AGENTS))]
        chance += shares[0] * shares[1] * shares[2] * shares[3]
    assert chance < agree <= 0.2


def test_the_strict_refuse_and_the_cautious_escalate_most(played: dict[str, list[Conversation]]) -> None:
    def count(model: str, outcome: str) -> int:
        return sum(conversation.outcome == outcome for conversation in played[model])

    assert max(AGENTS, key=lambda model: count(model, "DENY_REFUND")) == "rehearsal-strict"
    assert max(AGENTS, key=lambda model: count(model, "ESCALATE_HUMAN_AGENT")) == "rehearsal-cautious"
    assert max(AGENTS, key=lambda model: count(model, "RETURN_REFUND_FULL_BANK")) == "rehearsal-lenient"


def test_checks_fail_sometimes_and_arguments_fit_the_tools(played: dict[str, list[Conversation]]) -> None:
    statuses = sum((c.statuses for row in played.values() for c in row), Counter[int]())
    assert statuses[episode_pb2.TOOL_STATUS_VERIFICATION_REQUIRED] > 10
    assert statuses[episode_pb2.TOOL_STATUS_ERROR] < 0.02 * sum(statuses.values())


def test_customers_speak_at_natural_length(played: dict[str, list[Conversation]]) -> None:
    lengths = sorted(len(text.split()) for row in played.values() for c in row for text in c.texts)
    assert 15 <= lengths[len(lengths) // 2] <= 80
    assert lengths[-1] <= 160


def test_the_same_scenario_plays_the_same_way() -> None:
    first, second = (Conversation(123, "rehearsal-fair").play() for _ in range(2))
    assert first.agent == second.agent
    assert first.customer == second.customer
