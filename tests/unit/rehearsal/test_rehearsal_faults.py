from __future__ import annotations

import math

import orjson
import pytest

from policysweep.errors import InputError
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.faults import MODEL_FAULTS, FaultKind, FaultPlan, check_rates
from policysweep.models.rehearsal.refusals import REFUSALS
from policysweep.models.rehearsal.shapes import SHAPE_FAULTS

from .support import request, tool, user

CALL = Draft(tool_uses=(ToolUse.of("lookup", {"order_id": "ORD-1", "detail": "full"}),))
TEXT = Draft("A message of some length for the customer.")
REQUEST = request([user("hi")], tools=[tool("lookup")])


def spoiled(kind: FaultKind, draft: Draft) -> Draft:
    return MODEL_FAULTS[kind](draft, REQUEST)


@pytest.mark.parametrize(
    ("rates", "complaint"),
    [
        ({"http_418": 0.1}, "unknown fault kind 'http_418'; known kinds: http_400, http_401"),
        ({"stall": 1.5}, "must be a number from 0 to 1"),
        ({"stall": -0.1}, "must be a number from 0 to 1"),
        ({"stall": math.nan}, "must be a number from 0 to 1"),
        ({"stall": True}, "must be a number from 0 to 1"),
        ({"stall": "often"}, "must be a number from 0 to 1"),
        ({"stall": 0.6, "reset": 0.6}, "together they can be at most 1"),
    ],
)
def test_refuses_rates_that_make_no_sense(rates: dict[str, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        check_rates(rates)


def test_rates_are_met_and_shared_out() -> None:
    plan = FaultPlan({"http_429": 0.2, "reset": 0.1})
    drawn = [plan.draw(f"digest-{i}") for i in range(4000)]
    assert 0.17 < drawn.count(FaultKind.HTTP_429) / 4000 < 0.23
    assert 0.08 < drawn.count(FaultKind.RESET) / 4000 < 0.12


def test_a_retry_may_succeed_and_the_sequence_repeats() -> None:
    plan = FaultPlan({"http_500": 0.5}, seed=7)
    sequence = [plan.draw("same body") for _ in range(30)]
    assert {None, FaultKind.HTTP_500} == set(sequence)
    fresh = FaultPlan({"http_500": 0.5}, seed=7)
    assert [fresh.draw("same body") for _ in range(30)] == sequence
    other = FaultPlan({"http_500": 0.5}, seed=8)
    assert [other.draw("same body") for _ in range(30)] != sequence


def test_without_rates_nothing_is_drawn() -> None:
    assert FaultPlan({"stall": 0.0}).draw("x") is None


def test_malformed_calls_are_not_json() -> None:
    (use,) = spoiled(FaultKind.MALFORMED_TOOL_CALL, CALL).tool_uses
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(use.arguments or "")
    assert use.name == "lookup"


def test_a_text_becomes_a_malformed_call_when_tools_are_offered() -> None:
    assert spoiled(FaultKind.MALFORMED_TOOL_CALL, TEXT).tool_uses[0].name == "lookup"


def test_other_faults_of_the_model() -> None:
    assert spoiled(FaultKind.NONE_ARGUMENTS, CALL).tool_uses[0].arguments is None
    empty = spoiled(FaultKind.EMPTY_MESSAGE, TEXT)
    assert (empty.text, empty.tool_uses, empty.finish) == ("", (), "stop")
    cut = spoiled(FaultKind.LENGTH, TEXT)
    assert (cut.finish, cut.text) == ("length", TEXT.text[: len(TEXT.text) // 2])
    assert spoiled(FaultKind.UNKNOWN_TOOL, TEXT).tool_uses[0].name not in REQUEST.functions
    assert spoiled(FaultKind.REFUSAL, CALL).refusal
    assert spoiled(FaultKind.CONTENT_FILTER, TEXT).finish == "content_filter"


def test_every_kind_has_its_place_on_the_way_of_an_answer() -> None:
    """A shape of tool calls has two: it needs a call to spoil."""
    connection = {"reset", "reset_mid_body", "stall", "stall_mid_body", "truncated_json"}
    needing_a_call = {kind for kind, spoil in MODEL_FAULTS.items() if kind in SHAPE_FAULTS}
    places: list[set[str]] = [
        {str(kind) for kind in MODEL_FAULTS if kind not in needing_a_call},
        {str(kind) for kind in SHAPE_FAULTS},
        {str(kind) for kind in REFUSALS},
        connection,
    ]
    assert sorted(kind for place in places for kind in place) == sorted(FaultKind)


def test_a_call_is_made_up_that_fits_the_tools_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    offered = request([user("hi")], tools=[tool("count", schema)])
    for kind in (FaultKind.CALL_WITH_STOP, FaultKind.PARALLEL_CALLS, FaultKind.REPEATED_CALL):
        uses = MODEL_FAULTS[kind](TEXT, offered).tool_uses
        assert {use.name for use in uses} == {"count"}
        assert all(isinstance(orjson.loads(use.arguments or "")["n"], int) for use in uses)


def test_a_repeated_call_is_the_same_whatever_was_said() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    asked = [request([user(said)], tools=[tool("look", schema)]) for said in ("hi", "and now?")]
    first, second = (MODEL_FAULTS[FaultKind.REPEATED_CALL](TEXT, each).tool_uses for each in asked)
    assert first == second


def test_without_tools_there_is_no_call_to_spoil() -> None:
    plain = request([user("hi")])
    for kind in (FaultKind.CALL_WITH_STOP, FaultKind.REPEATED_CALL, FaultKind.PARALLEL_CALLS):
        assert MODEL_FAULTS[kind](TEXT, plain) == TEXT
