"""Fault injection: what goes wrong with model servers and models, by rate and kind.

A kind spoils an answer at one place on its way: what the model writes (MODEL_FAULTS, here), the shape that
the server gives it (shapes.py), the status that comes instead (refusals.py), or the connection (delivery.py).
Whether a request is hit depends on the fault seed, on its body and on how often this body was seen, so a
retry of the same request may succeed, and the same sweep meets the same faults again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import cycle, islice

import orjson

from policysweep.errors import InputError
from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import Json, ParsedRequest
from policysweep.models.rehearsal.structured import fill

_REMEMBERED_BODIES = 65_536


class FaultKind(StrEnum):
    """The kinds, as they are written in flags and on the admin route."""

    # A status instead of an answer.
    HTTP_400 = "http_400"
    HTTP_401 = "http_401"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_408 = "http_408"
    HTTP_413 = "http_413"
    HTTP_422 = "http_422"
    HTTP_429 = "http_429"
    HTTP_429_DATE = "http_429_date"
    HTTP_429_ABSURD = "http_429_absurd"
    HTTP_500 = "http_500"
    HTTP_502 = "http_502"
    HTTP_503 = "http_503"
    HTTP_503_BARE = "http_503_bare"
    HTTP_504 = "http_504"
    REDIRECT = "redirect"
    OVERFLOW_VLLM = "overflow_vllm"
    OVERFLOW_OPENAI = "overflow_openai"
    OVERFLOW_SGLANG = "overflow_sglang"
    OVERFLOW_TGI = "overflow_tgi"
    OVERFLOW_LLAMA_CPP = "overflow_llama_cpp"
    # The connection.
    RESET = "reset"
    RESET_MID_BODY = "reset_mid_body"
    STALL = "stall"
    STALL_MID_BODY = "stall_mid_body"
    TRUNCATED_JSON = "truncated_json"
    # A body that is no completion.
    HTML = "html"
    ERROR_IN_200 = "error_in_200"
    OVERFLOW_IN_200 = "overflow_in_200"
    NO_CHOICES = "no_choices"
    NO_MESSAGE = "no_message"
    CUT_BY_SERVER = "cut_by_server"
    # The shape of a completion.
    NULL_CONTENT = "null_content"
    CONTENT_PARTS = "content_parts"
    HALF_SURROGATE = "half_surrogate"
    REASONING_CONTENT = "reasoning_content"
    REASONING = "reasoning"
    THINK_TAGS = "think_tags"
    MISPLACED_ANSWER = "misplaced_answer"
    UNKNOWN_FINISH_REASON = "unknown_finish_reason"
    NULL_FINISH_REASON = "null_finish_reason"
    NO_USAGE = "no_usage"
    NULL_USAGE_DETAILS = "null_usage_details"
    # The shape of tool calls.
    EMPTY_TOOL_CALLS = "empty_tool_calls"
    NULL_TOOL_CALLS = "null_tool_calls"
    OBJECT_ARGUMENTS = "object_arguments"
    BRACES_IN_ARGUMENTS = "braces_in_arguments"
    UNICODE_ARGUMENTS = "unicode_arguments"
    DUPLICATE_CALL_IDS = "duplicate_call_ids"
    MISSING_CALL_IDS = "missing_call_ids"
    MISSING_NAME = "missing_name"
    CALL_WITH_STOP = "call_with_stop"
    CALL_WITH_REASONING = "call_with_reasoning"
    # What the model writes.
    PARALLEL_CALLS = "parallel_calls"
    REPEATED_CALL = "repeated_call"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    NONE_ARGUMENTS = "none_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    EMPTY_MESSAGE = "empty_message"
    LENGTH = "length"
    LENGTH_IN_CALL = "length_in_call"
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

    return replace(draft, tool_uses=tuple(map(broken, with_call(draft, request).tool_uses)))


def _none_arguments(draft: Draft, request: ParsedRequest) -> Draft:
    calls = with_call(draft, request).tool_uses
    return replace(draft, tool_uses=tuple(ToolUse(use.name, None) for use in calls))


def with_call(draft: Draft, request: ParsedRequest) -> Draft:
    """The draft with a call to spoil: when tools are offered and it calls none, the first one."""
    if draft.tool_uses or not request.functions:
        return draft
    return Draft(tool_uses=(_call_of(next(iter(request.functions)), request, request.conversation_key()),))


def _call_of(name: str, request: ParsedRequest, key: str) -> ToolUse:
    """A call that fits the tool's schema."""
    parameters = request.functions[name].get("parameters") or {"type": "object"}
    return ToolUse.of(name, fill(parameters, request.last_text(), key))


def _parallel_calls(draft: Draft, request: ParsedRequest) -> Draft:
    names = islice(cycle(request.functions), _PARALLEL)
    uses = tuple(_call_of(name, request, f"{request.digest} {at}") for at, name in enumerate(names))
    return replace(draft, tool_uses=uses)


def _with_odd_texts(odd: str) -> Callable[[Draft, ParsedRequest], Draft]:
    """Put `odd` behind every argument that is free text by the tool's schema."""

    def spoil(draft: Draft, request: ParsedRequest) -> Draft:
        uses = with_call(draft, request).tool_uses
        return replace(draft, tool_uses=tuple(_odd_use(use, request.functions, odd) for use in uses))

    return spoil


def _odd_use(use: ToolUse, functions: Mapping[str, Json], odd: str) -> ToolUse:
    properties = ((functions.get(use.name) or {}).get("parameters") or {}).get("properties") or {}
    free = {name for name, schema in properties.items() if schema.get("type") == "string"}
    free -= {name for name in free if not _RULES_FOR_TEXT.isdisjoint(properties[name])}
    arguments = orjson.loads(use.arguments or "{}")
    spoilt = {name: f"{value}{odd}" if name in free else value for name, value in arguments.items()}
    return ToolUse.of(use.name, spoilt)


def _repeated_call(draft: Draft, request: ParsedRequest) -> Draft:
    """One and the same call, whatever was said."""
    if not request.functions:
        return draft
    name = next(iter(request.functions))
    parameters = request.functions[name].get("parameters") or {"type": "object"}
    return Draft(tool_uses=(ToolUse.of(name, fill(parameters, name, name)),))


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


_PARALLEL = 3
_RULES_FOR_TEXT = frozenset({"enum", "const", "pattern", "format"})
_SCORE = re.compile(r'("(?!turn"|goal")\w+":)[1-5](?=[,}])')
_PROSE = "The agent did a decent job on the whole, and I would give it a good mark."
_IMAGINED = ("loyalty_ledger", "carrier_claims", "warehouse_camera", "manager_calendar")
_REFUSAL = "I'm sorry, but I can't help with that request."

_NEED_A_CALL = (
    FaultKind.EMPTY_TOOL_CALLS,
    FaultKind.OBJECT_ARGUMENTS,
    FaultKind.MISSING_CALL_IDS,
    FaultKind.MISSING_NAME,
    FaultKind.CALL_WITH_STOP,
    FaultKind.CALL_WITH_REASONING,
)

MODEL_FAULTS: Mapping[FaultKind, Callable[[Draft, ParsedRequest], Draft]] = {
    **dict.fromkeys(_NEED_A_CALL, with_call),
    FaultKind.DUPLICATE_CALL_IDS: _parallel_calls,
    FaultKind.PARALLEL_CALLS: _parallel_calls,
    FaultKind.BRACES_IN_ARGUMENTS: _with_odd_texts(' }{ "]["\\'),
    FaultKind.UNICODE_ARGUMENTS: _with_odd_texts(" \u6f22\u5b57 \U0001f642 \u2028 e\u0301"),
    FaultKind.REPEATED_CALL: _repeated_call,
    FaultKind.MALFORMED_TOOL_CALL: _malformed_call,
    FaultKind.NONE_ARGUMENTS: _none_arguments,
    FaultKind.UNKNOWN_TOOL: _unknown_tool,
    FaultKind.EMPTY_MESSAGE: lambda draft, request: Draft("", (), "stop"),
    FaultKind.LENGTH: _length,
    FaultKind.LENGTH_IN_CALL: lambda draft, request: _length(with_call(draft, request), request),
    FaultKind.REFUSAL: lambda draft, request: Draft(_REFUSAL, (), "stop", refusal=_REFUSAL),
    FaultKind.CONTENT_FILTER: lambda draft, request: Draft("", (), "content_filter"),
    FaultKind.PROSE: lambda draft, request: Draft(_PROSE, (), "stop"),
    FaultKind.SCORE_OFF_SCALE: _with_scores("7"),
    FaultKind.SCORE_NAN: _with_scores("NaN"),
}
"""How a fault changes what the model writes. Those in shapes.py that need a call to spoil get one here."""
