"""What an episode, and the gold actions of its task, do to a domain's database.

Only what changes a database is replayed: calls of tools that write, refused ones included, as a tool may fail
half way. Numbers in arguments are normalised as they were when the calls were made.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from policysweep.domains.tau2 import Domain, load_domain
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was executed, who made it, what it answered, and where that stands."""

    call: ep.ToolCall
    requestor: ep.Role.ValueType
    answer: str
    place: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The hashes of the agent's and the customer's database, and what each replayed action failed with."""

    hashes: tuple[str, str]
    errors: Sequence[str] = ()


def made_calls(episode: ep.Episode) -> Iterator[MadeCall]:
    """The calls of both sides in the order in which they were executed.

    A call without a result was not executed: the episode ended before it. Raises InputError for a result
    that belongs to no call.
    """
    private = list(episode.customer_tool_events)
    pending: list[ep.ToolCall] = []
    for index, message in enumerate(episode.messages):
        while private and private[0].after_message <= index:
            yield _private_call(private.pop(0))
        if message.role == ep.ROLE_TOOL:
            if not pending or pending[0].id != message.tool_call_id:
                raise InputError(
                    f"JudgeTau2: episode.messages[{index}] is a tool result for {message.tool_call_id!r}, "
                    "which is not the next call that waits for one"
                )
            yield MadeCall(pending.pop(0), ep.ROLE_AGENT, message.content, f"episode.messages[{index}]")
        else:
            pending = list(message.tool_calls)
    for event in private:
        yield _private_call(event)


def _private_call(event: ep.CustomerToolEvent) -> MadeCall:
    return MadeCall(event.call, ep.ROLE_CUSTOMER, event.result_json, f"customer call {event.call.id!r}")


def replay_calls(domain: Domain, calls: Sequence[MadeCall]) -> Outcome:
    """The databases after the calls of an episode.

    Raises InputError for a call that answers differently now: the episode was played on other data.
    """
    world = domain.world()
    for made in calls:
        box = domain.box(made.requestor)
        if box is None or made.call.name not in box.writes:
            continue
        answer = world.call(made.call, made.requestor).content
        if not _same(answer, made.answer):
            raise InputError(
                f"JudgeTau2: {made.place}: {made.call.name} answered {made.answer[:80]!r}, and answers "
                f"{answer[:80]!r} when it is replayed: the episode was played with another version of the "
                "package or of policysweep"
            )
    return Outcome(world.hashes())


def _same(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return bool(orjson.loads(left) == orjson.loads(right))
    except orjson.JSONDecodeError:
        return False


def replay_gold(domain: Domain, gold: tau2_pb2.Tau2GoldActions) -> Outcome:
    """The databases after the gold actions, and the error of each, "" for one that works."""
    return _gold_outcome(domain.name, gold.SerializeToString(deterministic=True))


@functools.lru_cache(maxsize=1024)
def _gold_outcome(domain_name: str, serialised: bytes) -> Outcome:
    """Kept, because every trial of a task is graded by the same actions."""
    world = load_domain(domain_name).world()
    errors = []
    for action in tau2_pb2.Tau2GoldActions.FromString(serialised).actions:
        call = ep.ToolCall(id=action.action_id, name=action.name, arguments_json=action.arguments_json)
        answer = world.call(call, action.requestor)
        errors.append("" if answer.status == ep.TOOL_STATUS_OK else answer.content)
    return Outcome(world.hashes(), errors)
