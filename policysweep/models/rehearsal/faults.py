"""Fault injection: what goes wrong with model servers and models, by rate and kind.

Faults of the server break the transport: the client gets an error status, half an answer or none. Faults of
the model spoil the content of an answer that arrives in good order. Whether a request is hit depends on the
fault seed, on its body and on how often this body was seen, so a retry of the same request may succeed, and
the same sweep meets the same faults again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from policysweep.errors import InputError
from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import ParsedRequest

_REMEMBERED_BODIES = 65_536


class FaultKind(StrEnum):
    """The kinds, as they are written in flags and on the admin route."""

    HTTP_429 = "http_429"
    HTTP_503 = "http_503"
    HTTP_500 = "http_500"
    RESET = "reset"
    RESET_MID_BODY = "reset_mid_body"
    STALL = "stall"
    TRUNCATED_JSON = "truncated_json"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    NONE_ARGUMENTS = "none_arguments"
    EMPTY_MESSAGE = "empty_message"
    LENGTH = "length"
    UNKNOWN_TOOL = "unknown_tool"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    PROSE = "prose"
    SCORE_OFF_SCALE = "score_off_scale"
    SCORE_NAN = "score_nan"


class FaultPlan:
    """Which requests fail, and how. Rates are probabilities per request; together at most 1."""

    def __init__(self, rates: Mapping[str, float], seed: int = 0) -> None:
        self.rates = check_rates(rates)
        self._seed = seed
        self._seen: OrderedDict[str, int] = OrderedDict()

    def draw(self, digest: str) -> FaultKind | None:
        """The fault that hits this request, counting it as seen."""
        if not self.rates:
            return None
        seen = self._count(digest)
        at = draws.fraction("fault", self._seed, digest, seen)
        for kind, rate in self.rates.items():
            if at < rate:
                return kind
            at -= rate
        return None

    def _count(self, digest: str) -> int:
        seen = self._seen.pop(digest, 0)
        self._seen[digest] = seen + 1
        if len(self._seen) > _REMEMBERED_BODIES:
            self._seen.popitem(last=False)
        return seen


def check_rates(rates: Mapping[str, float]) -> dict[FaultKind, float]:
    """Known kinds with rates from 0 to 1 that sum to at most 1, zero rates left out. Raises InputError."""
    checked: dict[FaultKind, float] = {}
    for name, rate in rates.items():
        if name not in FaultKind.__members__.values():
            raise InputError(f"unknown fault kind {name!r}; known kinds: {', '.join(FaultKind)}")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise InputError(f"fault rate of {name} is {rate!r}; it must be a number from 0 to 1")
        if rate:
            checked[FaultKind(name)] = float(rate)
    if sum(checked.values()) > 1 + 1e-9:
        raise InputError(f"fault rates sum to {sum(checked.values()):g}; together they can be at most 1")
    return checked


def _malformed_call(draft: Draft, request: ParsedRequest) -> Draft:
    def broken(use: ToolUse) -> ToolUse:
        text = use.arguments or "{}"
        return ToolUse(use.name, (text[: max(1, len(text) * 2 // 3)]) + '"')

    return replace(draft, tool_uses=tuple(map(broken, _calls(draft, request))))


def _none_arguments(draft: Draft, request: ParsedRequest) -> Draft:
    return replace(draft, tool_uses=tuple(ToolUse(use.name, None) for use in _calls(draft, request)))


def _calls(draft: Draft, request: ParsedRequest) -> tuple[ToolUse, ...]:
    """The calls to spoil; a text answer is turned into a call when tools are offered."""
    if draft.tool_uses or not request.functions:
        return draft.tool_uses
    return (ToolUse(next(iter(request.functions)), "{}"),)


def _length(draft: Draft, request: ParsedRequest) -> Draft:
    def half(text: str) -> str:
        return text[: len(text) // 2]

    cut = tuple(ToolUse(use.name, half(use.arguments or "")) for use in draft.tool_uses)
    return Draft(half(draft.text), cut, "length")


def _unknown_tool(draft: Draft, request: ParsedRequest) -> Draft:
    use = ToolUse(f"lookup_{draws.choose(_IMAGINED, request.digest)}", '{"query": "order"}')
    return Draft("", (use,))


def _with_scores(value: str) -> Callable[[Draft, ParsedRequest], Draft]:
    """Put `value` in the place of every score of a judge's answer."""
    return lambda draft, request: replace(draft, text=_SCORE.sub(rf"\g<1>{value}", draft.text))


_SCORE = re.compile(r'("(?!turn"|goal")\w+":)[1-5](?=[,}])')
_PROSE = "The agent did a decent job on the whole, and I would give it a good mark."
_IMAGINED = ("loyalty_ledger", "carrier_claims", "warehouse_camera", "manager_calendar")
_REFUSAL = "I'm sorry, but I can't help with that request."

MODEL_FAULTS: Mapping[FaultKind, Callable[[Draft, ParsedRequest], Draft]] = {
    FaultKind.MALFORMED_TOOL_CALL: _malformed_call,
    FaultKind.NONE_ARGUMENTS: _none_arguments,
    FaultKind.EMPTY_MESSAGE: lambda draft, request: Draft("", (), "stop"),
    FaultKind.LENGTH: _length,
    FaultKind.UNKNOWN_TOOL: _unknown_tool,
    FaultKind.REFUSAL: lambda draft, request: Draft(_REFUSAL, (), "stop", refusal=_REFUSAL),
    FaultKind.CONTENT_FILTER: lambda draft, request: Draft("", (), "content_filter"),
    FaultKind.PROSE: lambda draft, request: Draft(_PROSE, (), "stop"),
    FaultKind.SCORE_OFF_SCALE: _with_scores("7"),
    FaultKind.SCORE_NAN: _with_scores("NaN"),
}
"""How each fault of the model spoils a draft; the other kinds are faults of the server."""
