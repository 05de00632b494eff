"""What findings make of a model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policysweep.models.prompted_tools import ToolMode
from policysweep.probe.capabilities import ALL
from policysweep.probe.finding import ROLES, Finding, Role, Verdict
from policysweep.probe.run import ProbeResult
from policysweep.probe.usability import tool_mode, usability

YES, PARTLY, NO, UNKNOWN = Verdict
CALLERS: Sequence[Role] = ("agent", "customer")


def result(**verdicts: Verdict) -> ProbeResult:
    """Everything yes, but for `verdicts`, whose names have "_" for a blank."""
    given = {name.replace("_", " "): verdict for name, verdict in verdicts.items()}
    assert given.keys() <= {each.name for each in ALL}
    found = {each.name: Finding(given.get(each.name, YES), "") for each in ALL}
    return ProbeResult("http://host/v1", "m", findings=found)


def lacks(role: Role, **verdicts: Verdict) -> list[str]:
    return list(usability(result(**verdicts), role).lacks)


@pytest.mark.parametrize("role", ROLES)
def test_who_can_do_everything_can_be_everything(role: Role) -> None:
    assert usability(result(), role).usable


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("first", ["served", "chat"])
def test_what_all_rests_on_is_named_alone(role: Role, first: str) -> None:
    assert lacks(role, **{first: NO}, json_schema=UNKNOWN, context_length=UNKNOWN) == [first]


@pytest.mark.parametrize("verdict", [PARTLY, NO, UNKNOWN])
def test_a_judge_needs_its_schema_held(verdict: Verdict) -> None:
    assert lacks("judge", json_schema=verdict) == ["json schema"]
    assert lacks("agent", json_schema=verdict) == []


def test_a_customer_gets_by_with_less_context() -> None:
    assert lacks("customer", context_length=PARTLY) == []
    assert (
        lacks("agent", context_length=PARTLY) == lacks("judge", context_length=PARTLY) == ["context length"]
    )
    assert lacks("customer", context_length=NO) == ["context length"]


def test_thoughts_in_the_text_spoil_a_conversation() -> None:
    assert lacks("agent", thoughts_apart=NO) == lacks("customer", thoughts_apart=NO) == ["thoughts apart"]
    assert lacks("agent", thoughts_apart=PARTLY) == []


@pytest.mark.parametrize("name", ["logprobs", "usage", "prefix_cache", "repeatability", "tools_parallel"])
def test_what_is_only_good_to_have_decides_nothing(name: str) -> None:
    assert [lacks(role, **{name: NO}) for role in ROLES] == [[], [], []]


@pytest.mark.parametrize(
    ("auto", "required", "results", "prompted", "mode"),
    [
        (YES, NO, YES, YES, "native"),
        (PARTLY, YES, YES, YES, "native"),  # it would rather talk
        (PARTLY, NO, YES, YES, "prompted"),  # the server may drop tools
        (YES, YES, NO, YES, "prompted"),  # results are refused
        (NO, NO, NO, YES, "prompted"),
        (UNKNOWN, UNKNOWN, UNKNOWN, YES, "prompted"),
        (NO, YES, YES, NO, None),
        (NO, NO, NO, PARTLY, None),
    ],
)
def test_how_tools_are_given(
    auto: Verdict, required: Verdict, results: Verdict, prompted: Verdict, mode: ToolMode | None
) -> None:
    found = result(tools_auto=auto, tools_required=required, tool_results=results, tools_prompted=prompted)
    assert tool_mode(found) == mode
    for role in CALLERS:
        use = usability(found, role)
        assert (use.tool_mode, use.usable) == (mode, mode is not None)
