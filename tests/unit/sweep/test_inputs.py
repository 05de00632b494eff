"""The inputs in a run's folder: complete, readable, the same bytes for the same inputs."""

from __future__ import annotations

import pytest

from policysweep.errors import InputError
from policysweep.sweep.inputs import (
    RunInputs,
    decode_inputs,
    describe_difference,
    encode_scenarios,
    encode_worlds,
)
from policysweep.v1 import scenario_pb2, world_pb2

from .samples import inputs, scenario


def test_both_files_give_back_what_was_put_in() -> None:
    again = decode_inputs(encode_scenarios(inputs()), encode_worlds(inputs()), "run")
    assert list(again.scenarios) == list(inputs().scenarios)
    assert dict(again.worlds) == dict(inputs().worlds)


def test_the_same_inputs_give_the_same_bytes_whatever_the_order_of_a_map() -> None:
    shuffled = inputs()
    personality = shuffled.scenarios[0].persona.personality
    personality.clear()
    personality.update({"zeal": 1, "openness": 3})
    reverse = RunInputs(shuffled.scenarios, dict(reversed(list(inputs().worlds.items()))))
    assert encode_scenarios(reverse) == encode_scenarios(inputs())
    assert encode_worlds(reverse) == encode_worlds(inputs())
    assert encode_scenarios(inputs()).count(b"\n") == 4


def test_only_the_worlds_that_are_played_are_kept() -> None:
    kept = encode_worlds(RunInputs([scenario(0)], inputs().worlds))
    assert kept.count(b"\n") == 1
    with pytest.raises(InputError, match=r"no order world for t1: 1 tasks have none"):
        encode_worlds(RunInputs(inputs().scenarios, {"t0": world_pb2.OrderWorld()}))


@pytest.mark.parametrize(
    ("scenarios", "worlds", "expected"),
    [
        (b'{"scenario_id": "a"}\n{"scenario_', b"", "run/inputs/scenarios.jsonl:2: is damaged: "),
        (b'{"scenario": "a"}\n', b"", "run/inputs/scenarios.jsonl:1: is damaged: "),
        (b"3\n", b"", "run/inputs/scenarios.jsonl:1: is damaged: "),
        (
            b"",
            b'{"task_id": "t", "world": {}}\n{"task_id": "u"}\n',
            "run/inputs/worlds.jsonl:2: is damaged: ",
        ),
        (b"", b"[]\n", "run/inputs/worlds.jsonl:1: is damaged: "),
    ],
)
def test_names_the_file_and_line_of_damage(scenarios: bytes, worlds: bytes, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        decode_inputs(scenarios, worlds, "run")
    assert str(raised.value).startswith(expected)


def test_says_in_what_inputs_differ() -> None:
    other = RunInputs(
        [scenario(0), scenario(1), *(scenario(number) for number in range(4, 10))],
        {**inputs().worlds, "t0": world_pb2.OrderWorld(today="2030-01-01")},
    )
    other.scenarios[1].case_brief = "changed"
    assert describe_difference(inputs(), other) == (
        "only in the run: scenarios s2, s3; only in the sweep: scenarios s4, s5, s6 and 3 more; "
        "changed: scenarios s1; changed: worlds of tasks t0"
    )
    reverse = RunInputs(inputs().scenarios[::-1], inputs().worlds)
    assert describe_difference(inputs(), reverse) == "the scenarios stand in another order"


def test_four_hundred_scenarios_with_long_policies_are_read_again() -> None:
    many = [
        scenario_pb2.Scenario(
            scenario_id=f"s{number}",
            task_id="t0",
            policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="§ policy\n" * 1500)),
        )
        for number in range(400)
    ]
    again = decode_inputs(encode_scenarios(RunInputs(many, {})), b"", "run")
    assert list(again.scenarios) == many
