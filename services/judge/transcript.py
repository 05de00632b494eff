"""An episode as the judge reads it: numbered turns, tool traffic and how it ended, all of it quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policysweep.domains.returns.resolution import outcome_name
from policysweep.errors import InputError
from policysweep.quoting import quoted
from policysweep.v1 import episode_pb2 as ep

LAYOUT = 1
"""Raised whenever the same episode is rendered differently, because that changes what the judge is asked."""

MESSAGE_CHARACTERS = 8_000
"""Characters of one message, or of one call's arguments, that the judge sees."""

RESULT_CHARACTERS = 2_000
"""Characters of one tool result that the judge sees. Long ones are lists, and policy texts, which it has."""

_ANSWERED = "answered"
_STATUS = {
    ep.TOOL_STATUS_OK: "ok",
    ep.TOOL_STATUS_ERROR: "refused",
    ep.TOOL_STATUS_VERIFICATION_REQUIRED: "verification required",
    ep.TOOL_STATUS_ALREADY_CALLED: "refused as a repetition",
}

_UNKNOWN_END = "It is not stated how the conversation ended."
_ENDS = {
    ep.END_REASON_RESOLVED: "The agent declared a resolution.",
    ep.END_REASON_CUSTOMER_WITHDREW: "The customer withdrew from the conversation.",
    ep.END_REASON_TURN_LIMIT: "It was stopped at the turn limit, without a resolution.",
    ep.END_REASON_TOOL_ROUND_LIMIT: "It was stopped: one side called tools too often in one turn.",
    ep.END_REASON_ERROR_LIMIT: "It was stopped: one side made too many errors.",
    ep.END_REASON_REPEATED_CALLS: "It was stopped: one side repeated the same call too often.",
    ep.END_REASON_CONTEXT_OVERFLOW: "It was stopped: it no longer fitted into a model's context.",
    ep.END_REASON_TOKEN_BUDGET: "It was stopped: its token budget was used up.",
    ep.END_REASON_TOOL_FAULT: "It was stopped: a tool failed.",
}


def transcript(episode: ep.Episode) -> str:
    """The conversation, numbered by message index.

    Raises InputError for a message without a known role.
    """
    return "\n".join(line for index, message in enumerate(episode.messages) for line in _turn(index, message))


def _turn(index: int, message: ep.Message) -> Iterator[str]:
    match message.role:
        case ep.ROLE_CUSTOMER:
            yield f"[{index}] CUSTOMER"
            yield quoted(message.content, MESSAGE_CHARACTERS)
        case ep.ROLE_AGENT:
            if message.content or not message.tool_calls:
                yield f"[{index}] AGENT"
                yield quoted(message.content, MESSAGE_CHARACTERS)
            for call in message.tool_calls:
                yield f"[{index}] AGENT calls a tool"
                yield quoted(f"{call.name} {call.arguments_json}", MESSAGE_CHARACTERS)
        case ep.ROLE_TOOL:
            yield f"[{index}] TOOL, {_STATUS.get(message.tool_status, _ANSWERED)}"
            yield quoted(f"{message.tool_name} {message.content}", RESULT_CHARACTERS)
        case unknown:
            raise InputError(
                f"JudgeEpisode: episode.messages[{index}].role is {unknown}: use CUSTOMER, AGENT or TOOL"
            )


def ending(episode: ep.Episode) -> str:
    """How it ended: the reason, what was declared, what was really done, and whether the two agree."""
    lines = [_ENDS.get(episode.end.reason, _UNKNOWN_END)]
    if episode.end.detail:
        lines.append(quoted(episode.end.detail, MESSAGE_CHARACTERS))
    lines += _declared(episode)
    if episode.HasField("reconciliation"):  # absent in a conversation that others recorded
        lines += _executed(episode.reconciliation)
    return "\n".join(lines)


def _declared(episode: ep.Episode) -> Iterator[str]:
    if not episode.HasField("resolution"):
        yield "The agent declared no resolution."
        return
    resolution = episode.resolution
    yield f"The declared outcome is {_name(resolution.outcome)}. The declaration:"
    yield quoted(resolution.description, MESSAGE_CHARACTERS)
    yield from _listed("Conditions that it sets:", resolution.conditions)
    yield from _listed("Next steps that it gives the customer:", resolution.customer_next_steps)


def _name(outcome: ep.Outcome.ValueType) -> str:
    return outcome_name(outcome) if outcome in ep.Outcome.values() else f"unknown ({outcome})"


def _listed(title: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield title
        yield quoted("\n".join(f"- {entry}" for entry in entries), MESSAGE_CHARACTERS)


def _executed(reconciliation: ep.Reconciliation) -> Iterator[str]:
    if not reconciliation.writes:
        yield "No tool call changed the order."
    else:
        yield f"The executed tool calls amount to {_name(reconciliation.executed)}:"
        yield quoted("\n".join(f"- {write.tool_name}" for write in reconciliation.writes))
    if reconciliation.mismatch:
        yield "What was declared and what was done contradict each other:"
        yield quoted(reconciliation.explanation)
