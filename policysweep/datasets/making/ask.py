"""Asks a chat model for the facts of one task, until they are valid or the attempts are used up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from policysweep.datasets.making.derive import TODAY, derive_world
from policysweep.datasets.making.facts import Facts, facts_schema
from policysweep.datasets.problems import field_name
from policysweep.datasets.rules.text import words
from policysweep.datasets.rules.world import check_world
from policysweep.datasets.rules.world_shape import ANY_WORDS, world_shape
from policysweep.errors import ContextOverflow
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, ResponseSchema
from policysweep.v1 import agent_pb2, episode_pb2, scenario_pb2

ATTEMPTS = 3
TOLD_FAULTS = 10
"""How many faults of an answer the model is told."""
TELLING_WORD = 4
"""Letters from which on a word of a product name tells something."""

_INSTRUCTIONS = (Path(__file__).parent / "prompts" / "world.md").read_text(encoding="utf-8")
_SAMPLING = agent_pb2.Sampling(temperature=0.0, top_p=1.0, max_tokens=4096)
_TIMEOUT = 300.0
_WORLD = world_shape(ANY_WORDS)


@dataclass(frozen=True)
class Made:
    """A world that a model made."""

    task_id: str
    world: dict[str, Any]
    rehearsal: bool
    attempts: int


@dataclass(frozen=True)
class Failed:
    """A task for which no attempt gave a valid answer; `faults` are those of the last one."""

    task_id: str
    faults: list[str]


def describe_case(scenario: scenario_pb2.Scenario) -> str:
    """All that the data set tells of a task, for the model."""
    brief = scenario.customer_brief
    return (
        f"Today is {TODAY}.\n\n"
        f"The case: {scenario.task.detail}\n\n"
        f"Why the customer writes: {scenario.task.reason}\n\n"
        f"What the customer says freely: {brief.basic_info}\n\n"
        f"What the customer keeps private: {brief.private_info}\n"
    )


async def ask_world(model: ChatModel, scenario: scenario_pb2.Scenario) -> Made | Failed:
    """Make the world of a scenario's task. Raises ModelServerError, not tried again, if the server fails."""
    case = describe_case(scenario)
    messages = [{"role": "system", "content": _INSTRUCTIONS}, {"role": "user", "content": case}]
    faults: list[str] = []
    for attempt in range(1, ATTEMPTS + 1):
        try:
            reply = await model.complete(_request(messages, scenario.task_id))
        except ContextOverflow as fault:
            return Failed(scenario.task_id, [str(fault)])
        world, faults = read_answer(reply, scenario.task_id, case)
        if world is not None:
            return Made(scenario.task_id, world, reply.rehearsal, attempt)
        messages = [*messages, {"role": "assistant", "content": reply.text}, _correction(faults)]
    return Failed(scenario.task_id, faults)


def _request(messages: list[dict[str, str]], task_id: str) -> ChatRequest:
    return ChatRequest(
        messages=messages,
        response_schema=ResponseSchema("order_facts", facts_schema()),
        sampling=_SAMPLING,
        session_id=f"world-{task_id}",
        timeout=_TIMEOUT,
    )


def _correction(faults: list[str]) -> dict[str, str]:
    told = "\n".join(f"- {fault}" for fault in faults[:TOLD_FAULTS])
    content = f"The answer cannot be used:\n{told}\nAnswer again with the complete, corrected JSON object."
    return {"role": "user", "content": content}


def read_answer(reply: ChatReply, task_id: str, case: str) -> tuple[dict[str, Any] | None, list[str]]:
    """The world in an answer, or None and what is wrong with the answer."""
    if reply.finish_reason == episode_pb2.FINISH_REASON_LENGTH:
        return None, [f"the answer was cut off at {_SAMPLING.max_tokens} tokens; be brief"]
    try:
        facts = Facts.model_validate_json(reply.text)
    except ValidationError as fault:
        return None, [f"{field_name(each['loc']) or 'answer'}: {each['msg']}" for each in fault.errors()]
    faults = [] if reply.rehearsal else list(_invented(facts, case))  # rehearsal invents, and is marked
    world = derive_world(facts, task_id, case)
    faults += [f"{field_name(found.path)}: {found.message}" for found in _WORLD(world)]
    faults = faults or [f"{field_name(found.path)}: {found.message}" for found in check_world(world)]
    return (None, faults) if faults else (world, [])


def _invented(facts: Facts, case: str) -> Iterator[str]:
    told = set(words(case))
    for at, item in enumerate(facts.items):
        telling = {word for word in words(item.name) if len(word) >= TELLING_WORD}
        if telling and not telling & told:
            yield f"items[{at}].name: the case names no {item.name!r}; use its item names"
