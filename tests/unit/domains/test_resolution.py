from __future__ import annotations

import json
from typing import get_args

import pytest

from policysweep.domains.returns.resolution import (
    RESOLUTION_TOOL,
    ResolutionType,
    outcome_from_name,
    outcome_name,
    parse_resolution,
    resolution_options,
    resolution_tool,
)
from policysweep.v1 import episode_pb2

NAMES = [name.removeprefix("OUTCOME_") for name in episode_pb2.Outcome.keys()[1:]]


def test_the_names_are_those_of_the_contract() -> None:
    assert list(get_args(ResolutionType)) == NAMES
    assert [outcome_name(option.outcome) for option in resolution_options()] == NAMES
    assert [outcome_name(outcome_from_name(name)) for name in NAMES] == NAMES


@pytest.mark.parametrize("name", ["", "UNSPECIFIED", "OUTCOME_DENY_REFUND", "deny_refund"])
def test_other_names_are_refused_with_the_seven(name: str) -> None:
    with pytest.raises(ValueError, match="DENY_REFUND, REPLACEMENT_EXCHANGE"):
        outcome_from_name(name)


def test_the_tool_offers_the_options_given() -> None:
    tool = resolution_tool(resolution_options()[3:5])
    kind = json.loads(tool.parameters_json)["properties"]["resolution_type"]
    assert tool.name == RESOLUTION_TOOL
    assert kind["enum"] == ["DENY_REFUND", "REPLACEMENT_EXCHANGE"]
    assert "nothing is paid back" in kind["description"]
    assert resolution_tool(resolution_options()) == resolution_tool(resolution_options())
    with pytest.raises(ValueError, match="at least one"):
        resolution_tool([])


def test_a_resolution_is_read_whole() -> None:
    arguments = {
        "resolution_type": "DENY_REFUND",
        "description": " Late {but} close. ",
        "conditions": None,
        "customer_next_steps": ["Keep the item"],
        "message": "Sorry.",
    }
    resolution, closing = parse_resolution(json.dumps(arguments))
    assert resolution == episode_pb2.Resolution(
        outcome=episode_pb2.OUTCOME_DENY_REFUND,
        description="Late {but} close.",
        customer_next_steps=["Keep the item"],
    )
    assert closing == "Sorry."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "resolution_type: Field required; description: Field required"),
        ("{", "Invalid JSON"),
        ("null", "should be an object"),
        ('{"resolution_type": "FULL", "description": "x"}', "resolution_type: Input should be"),
        ('{"resolution_type": "USER_ABORT", "description": "x", "amount": 3}', "amount"),
        ('{"resolution_type": "USER_ABORT", "description": ""}', "description"),
    ],
)
def test_unreadable_resolutions_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="declare_resolution does not accept") as caught:
        parse_resolution(text)
    assert said in str(caught.value)
