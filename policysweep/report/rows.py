"""A row is what the report needs of one record, and no more.

A record with its conversation takes tens of kilobytes; a row takes under one, so that 40,000 units fit into
a few tens of megabytes. Strings that many rows share are interned.

Neither a record nor a row names the customer persona: the scenario stands for it, and the data set tells
which persona a scenario has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

ERROR_FIELDS = tuple(field.name for field in ep.ErrorCounts.DESCRIPTOR.fields)
"""Names of the counts in `Row.errors`, in order."""

_NO_ERRORS = (0,) * len(ERROR_FIELDS)
_ENUMS = (
    ("outcome", ep.Outcome),
    ("reconciliation.declared", ep.Outcome),
    ("reconciliation.executed", ep.Outcome),
    ("end.reason", ep.EndReason),
    ("end.fault", ep.FaultParty),
)


class Tokens(NamedTuple):
    """Tokens of one role's model calls.

    What was reported is summed and what was not is counted, because one silent answer must neither erase a
    total nor count as zero. `answers` are entries of `Episode.model_calls`, `calls` the model calls behind
    them. Cached tokens count only where the prompt's size was reported too; `cached_of` is the prompt
    tokens of just those answers, the denominator of the cached share.
    """

    answers: int = 0
    calls: int = 0
    prompt: int = 0
    prompt_unreported: int = 0
    cached: int = 0
    cached_of: int = 0
    cached_unreported: int = 0
    completion: int = 0
    completion_unreported: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """The sum, number by number."""
        return Tokens(*map(int.__add__, self, other))


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded unit. Enum fields hold the numbers of `episode_pb2`."""

    unit_id: str
    scenario_id: str
    task_id: str
    agent: str
    agent_persona: int
    trial: int
    outcome: int
    end_reason: int
    fault: int
    mismatch: bool
    declared: int
    executed: int
    errors: tuple[int, ...]
    agent_tokens: Tokens
    customer_tokens: Tokens
    turns: int
    duration_seconds: float
    rehearsal: bool


def row(record: run_pb2.UnitRecord) -> Row:
    """The row of a record.

    Raises InputError for a record that lacks its unit or holds a number that this version does not know.
    """
    unit, episode = record.unit, record.episode
    _check(record)
    errors = tuple(getattr(episode.errors, name) for name in ERROR_FIELDS)
    return Row(
        unit_id=unit.unit_id,
        scenario_id=intern(unit.scenario_id),
        task_id=intern(unit.task_id),
        agent=intern(unit.agent),
        agent_persona=unit.agent_persona,
        trial=unit.trial,
        outcome=episode.outcome,
        end_reason=episode.end.reason,
        fault=episode.end.fault,
        mismatch=episode.reconciliation.mismatch,
        declared=episode.reconciliation.declared,
        executed=episode.reconciliation.executed,
        errors=errors if any(errors) else _NO_ERRORS,
        agent_tokens=tokens_of(usages(episode.model_calls, ep.ROLE_AGENT)),
        customer_tokens=tokens_of(usages(episode.model_calls, ep.ROLE_CUSTOMER)),
        turns=episode.turns,
        duration_seconds=episode.duration_seconds,
        rehearsal=episode.rehearsal,
    )


def _check(record: run_pb2.UnitRecord) -> None:
    unit, episode = record.unit, record.episode
    where = f"The record of unit {unit.unit_id or '(no id)'}"
    for name in ("unit_id", "scenario_id", "task_id", "agent"):
        if not getattr(unit, name):
            raise InputError(f"{where} has no unit.{name}; run `policysweep verify` on the run.")
    held = episode.reconciliation
    numbers = (episode.outcome, held.declared, held.executed, episode.end.reason, episode.end.fault)
    for (name, enum), number in zip(_ENUMS, numbers, strict=True):
        if number not in enum.values():
            raise InputError(
                f"{where} has episode.{name} = {number}, which this version of policysweep does not know; "
                "report the run with the version that recorded it."
            )
    for position, call in enumerate(episode.model_calls):
        if call.role not in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER):
            raise InputError(
                f"{where} has episode.model_calls[{position}].role = {call.role}; only the agent and the "
                "customer call models in an episode."
            )


def usages(calls: Iterable[ep.ModelCall], role: ep.Role.ValueType) -> Iterable[ep.Usage]:
    """The usages of a side's answers. A prompt that did not fit and was not sent has cost nothing."""
    return (call.usage for call in calls if call.role == role and not _not_sent(call))


def _not_sent(call: ep.ModelCall) -> bool:
    return call.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW and not call.usage.model_calls


def tokens_of(usages: Iterable[ep.Usage]) -> Tokens:
    """The sums of some answers' tokens."""
    answers = calls = prompt = no_prompt = cached = cached_of = no_cached = completion = no_completion = 0
    for usage in usages:
        answers += 1
        # An answer that states no number of calls still took one.
        calls += usage.model_calls or 1
        has_prompt = usage.HasField("prompt_tokens")
        if has_prompt:
            prompt += usage.prompt_tokens
        else:
            no_prompt += 1
        if has_prompt and usage.HasField("cached_prompt_tokens"):
            cached += usage.cached_prompt_tokens
            cached_of += usage.prompt_tokens
        else:
            no_cached += 1
        if usage.HasField("completion_tokens"):
            completion += usage.completion_tokens
        else:
            no_completion += 1
    return Tokens(answers, calls, prompt, no_prompt, cached, cached_of, no_cached, completion, no_completion)
