"""The reward of a tau2-bench episode, by tau2-bench's rules (v0.2.0); pure but for the tools that it replays.

    reward = product over the criteria in the basis, and 0 unless the agent or the user ended the episode

    DB             the episode's calls and the gold actions lead to databases with the same hash
    COMMUNICATE    each piece of information occurs in a message of the agent
    ACTION         each gold action was called
    NL_ASSERTION   each assertion in plain words holds; what a judge says comes in from outside
    ENV_ASSERTION  assertions in code, which no task of airline and retail has

An unspecified basis is DB and COMMUNICATE. A criterion that the task gives nothing to check is 1 and is said
to be vacuous. What is not in the basis is a diagnostic. Gold actions that fail are shown, where tau2-bench
passes over them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from policysweep.domains.tau2 import Domain
from policysweep.domains.tau2.arguments import NotArguments, read_arguments
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, tau2_pb2
from services.judge.tau2_replay import MadeCall, Outcome, made_calls, replay_calls, replay_gold

Criterion: TypeAlias = tau2_pb2.Tau2Criterion.ValueType

DB = tau2_pb2.TAU2_CRITERION_DB
COMMUNICATE = tau2_pb2.TAU2_CRITERION_COMMUNICATE
ACTION = tau2_pb2.TAU2_CRITERION_ACTION
NL_ASSERTION = tau2_pb2.TAU2_CRITERION_NL_ASSERTION
ENV_ASSERTION = tau2_pb2.TAU2_CRITERION_ENV_ASSERTION

ENDED_BY_PARTICIPANT = frozenset(
    {
        ep.END_REASON_USER_STOP,
        ep.END_REASON_USER_TRANSFER,
        ep.END_REASON_USER_OUT_OF_SCOPE,
        ep.END_REASON_RESOLVED,
    }
)
"""Ends that the user or the agent brought about. tau2-bench calls the first three "user_stop"."""


def basis(criteria: tau2_pb2.Tau2Criteria) -> frozenset[Criterion]:
    """The criteria that make up the reward."""
    return frozenset(criteria.reward_basis or (DB, COMMUNICATE))


def wants_assertions(task: tau2_pb2.Tau2Task, episode: ep.Episode, *, always: bool) -> bool:
    """Whether a judge has to be asked: for a factor of a reward that is not 0 anyway, or when told to."""
    if not task.criteria.nl_assertions:
        return False
    counts = NL_ASSERTION in basis(task.criteria) and episode.end.reason in ENDED_BY_PARTICIPANT
    return always or counts


def grade(
    task: tau2_pb2.Tau2Task,
    episode: ep.Episode,
    domain: Domain,
    assertions: Sequence[judge_pb2.Tau2AssertionCheck] = (),
) -> judge_pb2.Tau2Grade:
    """Grade an episode. `assertions` is what the judge said of each assertion; empty when it was not asked.

    Raises InputError for an episode that is not what the domain's tools make of its calls.
    """
    criteria = task.criteria
    calls = list(made_calls(episode))
    reached = replay_calls(domain, calls)
    gold = replay_gold(domain, criteria.gold)
    found = judge_pb2.Tau2Grade(
        ended_by_participant=episode.end.reason in ENDED_BY_PARTICIPANT,
        actions=_action_checks(criteria.gold, gold, calls, domain),
        information=[_info_check(info, episode) for info in criteria.communicate_info],
        assertions=assertions,
        database_hash=reached.hashes[0],
        gold_database_hash=gold.hashes[0] if criteria.HasField("gold") else "",
    )
    values = _values(criteria, found, database=reached.hashes == gold.hashes)
    _add_criteria(found, criteria, values)
    _add_reward(found, basis(criteria), values)
    return found


# ------------------------------------------------------------------ product


def _values(
    criteria: tau2_pb2.Tau2Criteria, found: judge_pb2.Tau2Grade, *, database: bool
) -> Mapping[Criterion, bool | None]:
    """What each criterion comes to; None for assertions that were not judged, or not in full."""
    return {
        DB: database or not criteria.HasField("gold"),
        COMMUNICATE: all(check.met for check in found.information),
        ACTION: all(check.matched for check in found.actions),
        NL_ASSERTION: _assertions_hold(criteria, found.assertions),
        ENV_ASSERTION: True,
    }


def _assertions_hold(
    criteria: tau2_pb2.Tau2Criteria, checks: Sequence[judge_pb2.Tau2AssertionCheck]
) -> bool | None:
    if not criteria.nl_assertions:
        return True
    if any(check.HasField("met") and not check.met for check in checks):
        return False
    complete = len(checks) == len(criteria.nl_assertions) and all(check.HasField("met") for check in checks)
    return True if complete else None


def _vacuous(criterion: Criterion, criteria: tau2_pb2.Tau2Criteria) -> bool:
    """Whether the task gives the criterion nothing to check."""
    return {
        DB: not criteria.HasField("gold"),
        COMMUNICATE: not criteria.communicate_info,
        ACTION: not criteria.gold.actions,
        NL_ASSERTION: not criteria.nl_assertions,
        ENV_ASSERTION: True,
    }[criterion]


def _add_criteria(
    found: judge_pb2.Tau2Grade, criteria: tau2_pb2.Tau2Criteria, values: Mapping[Criterion, bool | None]
) -> None:
    counting = basis(criteria)
    for criterion, value in values.items():
        if criterion == ENV_ASSERTION and criterion not in counting:
            continue
        found.criteria.add(
            criterion=criterion,
            value=None if value is None else float(value),
            in_basis=criterion in counting,
            vacuous=_vacuous(criterion, criteria),
        )


def _add_reward(
    found: judge_pb2.Tau2Grade, counting: frozenset[Criterion], values: Mapping[Criterion, bool | None]
) -> None:
    strictly = {**values, COMMUNICATE: all(check.met_strictly for check in found.information)}
    reward = _product([values[criterion] for criterion in counting], found.ended_by_participant)
    strict_reward = _product([strictly[criterion] for criterion in counting], found.ended_by_participant)
    if reward is not None:
        found.reward = reward
    else:
        found.absent_reason = _why_absent(found.assertions)
    if strict_reward is not None:
        found.strict_reward = strict_reward


def _product(factors: Sequence[bool | None], ended_by_participant: bool) -> float | None:
    """1, or 0 as soon as one factor is, whatever the unknown ones would be; None when that leaves it open."""
    if not ended_by_participant or False in factors:
        return 0.0
    return None if None in factors else 1.0


def _why_absent(
    checks: Sequence[judge_pb2.Tau2AssertionCheck],
) -> judge_pb2.AbsentReason.ValueType:
    """The first reason of the judge; NOT_APPLICABLE when it was not asked."""
    reasons = (check.absent_reason for check in checks if not check.HasField("met"))
    return next(reasons, judge_pb2.ABSENT_REASON_NOT_APPLICABLE)


# ------------------------------------------------------------------ actions


def _action_checks(
    gold: tau2_pb2.Tau2GoldActions, outcome: Outcome, calls: Sequence[MadeCall], domain: Domain
) -> list[judge_pb2.Tau2ActionCheck]:
    made = [(each.call.name, _arguments(domain, each.requestor, each.call)) for each in calls]
    return [
        judge_pb2.Tau2ActionCheck(
            action_id=action.action_id,
            name=action.name,
            matched=_was_made(action, domain, made),
            replay_error=error,
        )
        for action, error in zip(gold.actions, outcome.errors, strict=True)
    ]


def _was_made(
    action: tau2_pb2.Tau2Action, domain: Domain, made: Sequence[tuple[str, dict[str, Any] | None]]
) -> bool:
    """tau2-bench's rule: a call of the tool, equal in the arguments that count, by default the call's own."""
    gold = ep.ToolCall(name=action.name, arguments_json=action.arguments_json)
    wanted = _arguments(domain, action.requestor, gold)
    compared = action.compared.names if action.HasField("compared") else None
    return wanted is not None and any(
        name == action.name and arguments is not None and _equal(arguments, wanted, compared)
        for name, arguments in made
    )


def _equal(arguments: dict[str, Any], wanted: dict[str, Any], compared: Sequence[str] | None) -> bool:
    counting = arguments.keys() if compared is None else compared
    return _only(arguments, counting) == _only(wanted, counting)


def _arguments(domain: Domain, requestor: ep.Role.ValueType, call: ep.ToolCall) -> dict[str, Any] | None:
    """The arguments of a call, normalised; None when they are no JSON object."""
    box = domain.box(requestor)
    schema = box.schemas.get(call.name, {}) if box is not None else {}
    try:
        return read_arguments(call.arguments_json, schema)
    except NotArguments:
        return None


def _only(arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: arguments[name] for name in names if name in arguments}


# ------------------------------------------------------------------ information

# A number with its thousands separators and decimals, or a word.
_TOKEN = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+")


def _info_check(info: str, episode: ep.Episode) -> judge_pb2.Tau2InfoCheck:
    check = judge_pb2.Tau2InfoCheck(info=info)
    wanted = _tokens(info)
    for index, message in enumerate(episode.messages):
        if message.role != ep.ROLE_AGENT or not message.content.strip():
            continue
        if not check.met and info.lower() in message.content.lower().replace(",", ""):
            check.met, check.message_index = True, index
        if not message.tool_calls and not check.met_strictly:
            check.met_strictly = bool(wanted) and _contains(_tokens(message.content), wanted)
    return check


def _tokens(text: str) -> list[str | Decimal]:
    """Words in lower case and numbers by value, in order."""
    found = _TOKEN.findall(text.lower())
    return [Decimal(token.replace(",", "")) if token[0].isdecimal() else token for token in found]


def _contains(tokens: Sequence[str | Decimal], wanted: Sequence[str | Decimal]) -> bool:
    """Whether `wanted` occurs in `tokens`, in order and without anything in between."""
    length = len(wanted)
    return any(tokens[at : at + length] == wanted for at in range(len(tokens) - length + 1))
