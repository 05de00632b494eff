"""The plan: derived, balanced, disjoint, and the same everywhere."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.errors import InputError
from policysweep.sweep.plan import (
    PERSONAS,
    ScenarioKey,
    Shard,
    in_shard,
    parse_shard,
    plan_units,
    unit_id,
    unit_seed,
)
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

GRID = [
    ScenarioKey(f"c{customer}_t{task:02}", f"task_{task:03}", f"customer_{customer}")
    for task in range(40)
    for customer in range(10)
]


def manifest(
    assignment: run_pb2.PersonaAssignment.ValueType = run_pb2.PERSONA_ASSIGNMENT_BALANCED,
    *,
    agents: Sequence[str] = ("a", "b"),
    trials: int = 1,
    seed: int = 0,
) -> run_pb2.RunManifest:
    return run_pb2.RunManifest(
        dataset=run_pb2.DatasetInfo(digest="d" * 64, scenarios=len(GRID), tasks=40),
        agents=[run_pb2.AgentEntry(name=name) for name in agents],
        trials=trials,
        seed=seed,
        persona_assignment=assignment,
        fixed_persona=ep.AGENT_PERSONA_FAIR,
    )


def test_ids_and_seeds_are_pinned() -> None:
    """A change here makes every standing run unreadable to `verify`: it must be a decision."""
    assert unit_id("d" * 64, "s", "a", ep.AGENT_PERSONA_FAIR, 0) == "7e9e888a59d1c85fbee27126e9c2044f"
    assert unit_seed("d" * 64, 0, "s", 0) == 394248441


def test_balanced_deals_each_persona_equally_often_over_tasks_and_customers() -> None:
    for trials in (1, 3):
        units = list(plan_units(manifest(agents=("a",), trials=trials), GRID))
        customers = {key.scenario_id: key.persona_id for key in GRID}
        over_tasks = Counter((unit.task_id, unit.agent_persona) for unit in units)
        over_customers = Counter((customers[unit.scenario_id], unit.agent_persona) for unit in units)
        assert len(over_tasks) == 40 * 5
        assert set(over_tasks.values()) == {2 * trials}
        assert len(over_customers) == 10 * 5
        assert set(over_customers.values()) == {8 * trials}


def test_balanced_gives_a_scenario_another_persona_in_each_of_five_trials() -> None:
    units = plan_units(manifest(agents=("a",), trials=5), GRID[:1])
    assert sorted(unit.agent_persona for unit in units) == sorted(PERSONAS)


def test_what_a_unit_meets_does_not_depend_on_the_agent() -> None:
    met: dict[tuple[str, int], tuple[int, int]] = {}
    for agents in (["a", "b"], ["b"], ["other", "a"]):
        for unit in plan_units(manifest(agents=agents, trials=2), GRID):
            key = (unit.scenario_id, unit.trial)
            assert met.setdefault(key, (unit.seed, unit.agent_persona)) == (unit.seed, unit.agent_persona)
    assert len({seed for seed, _ in met.values()}) == len(met)


def test_the_order_of_the_data_set_changes_no_unit() -> None:
    forward = {unit.unit_id: unit.SerializeToString() for unit in plan_units(manifest(), GRID)}
    backward = {unit.unit_id: unit.SerializeToString() for unit in plan_units(manifest(), GRID[::-1])}
    assert forward == backward


def test_agents_progress_together_and_trials_are_complete() -> None:
    units = list(plan_units(manifest(trials=2), GRID))
    assert [unit.agent for unit in units[:4]] == ["a", "b", "a", "b"]
    assert [unit.trial for unit in units] == [0] * 800 + [1] * 800
    assert [unit.scenario_id for unit in units[:800:2]] == [key.scenario_id for key in GRID]


def test_fixed_and_swept_assignments() -> None:
    fixed = list(plan_units(manifest(run_pb2.PERSONA_ASSIGNMENT_FIXED), GRID))
    assert {unit.agent_persona for unit in fixed} == {ep.AGENT_PERSONA_FAIR}
    swept = list(plan_units(manifest(run_pb2.PERSONA_ASSIGNMENT_SWEPT), GRID))
    assert Counter(unit.agent_persona for unit in swept) == dict.fromkeys(PERSONAS, 800)
    assert len({unit.seed for unit in swept}) == len(GRID)


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        (run_pb2.PERSONA_ASSIGNMENT_FIXED, 1600),
        (run_pb2.PERSONA_ASSIGNMENT_BALANCED, 1600),
        (run_pb2.PERSONA_ASSIGNMENT_SWEPT, 8000),
    ],
)
def test_every_unit_once(assignment: run_pb2.PersonaAssignment.ValueType, expected: int) -> None:
    units = list(plan_units(manifest(assignment, trials=2), GRID))
    assert len({unit.unit_id for unit in units}) == len(units) == expected


def test_seeds_fit_31_bits_and_follow_the_seed_of_the_sweep() -> None:
    first = [unit.seed for unit in plan_units(manifest(), GRID)]
    second = [unit.seed for unit in plan_units(manifest(seed=1), GRID)]
    assert all(0 <= seed < 2**31 for seed in first)
    assert first != second
    ids = [[unit.unit_id for unit in plan_units(manifest(seed=seed), GRID)] for seed in (0, 1)]
    assert ids[0] == ids[1]


def test_names_cannot_be_shifted_into_one_another() -> None:
    one = unit_id("d", "s1", "0", ep.AGENT_PERSONA_FAIR, 0)
    assert one != unit_id("d", "s", "10", ep.AGENT_PERSONA_FAIR, 0)
    assert one != unit_id("d", 's1","0', "", ep.AGENT_PERSONA_FAIR, 0)


def test_forty_thousand_units_are_planned_in_flat_memory() -> None:
    planned = manifest(agents=[f"agent-{number}" for number in range(10)], trials=10)
    units = plan_units(planned, GRID)
    next(units)
    tracemalloc.start()
    try:
        count = 1 + sum(1 for _ in units)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < 200_000


def test_refuses_repeated_scenarios_and_an_unstated_assignment() -> None:
    with pytest.raises(InputError, match="scenario c0_t00 occurs twice"):
        next(plan_units(manifest(), [GRID[0], GRID[1], GRID[0]]))
    with pytest.raises(InputError, match="does not state how agent personas are assigned"):
        next(plan_units(manifest(run_pb2.PERSONA_ASSIGNMENT_UNSPECIFIED), GRID))


@given(st.integers(1, 12), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_every_unit_is_in_exactly_one_shard(count: int, any_id: str) -> None:
    assert [in_shard(any_id, Shard(index, count)) for index in range(count)].count(True) == 1


def test_shards_are_even() -> None:
    ids = [unit.unit_id for unit in plan_units(manifest(trials=5), GRID)]
    sizes = [sum(in_shard(each, Shard(index, 8)) for each in ids) for index in range(8)]
    assert sum(sizes) == 4000
    assert min(sizes) > 400


@pytest.mark.parametrize(("text", "expected"), [("0/1", Shard(0, 1)), ("7/8", Shard(7, 8))])
def test_reads_a_shard(text: str, expected: Shard) -> None:
    assert parse_shard(text) == expected


@pytest.mark.parametrize("text", ["", "1", "1/", "/8", "a/8", "-1/8", "1/0", "1/8/2", "1.0/2", "²/8"])
def test_refuses_what_is_no_shard(text: str) -> None:
    with pytest.raises(InputError, match=r"must be i/N with whole numbers, such as 0/8 for the first of 8"):
        parse_shard(text)


def test_says_that_shards_count_from_0() -> None:
    with pytest.raises(InputError, match="shard 8/8: counts from 0, so the last of 8 is 7/8"):
        parse_shard("8/8")


def test_units_of_one_scenario_are_neighbours() -> None:
    units = plan_units(manifest(run_pb2.PERSONA_ASSIGNMENT_SWEPT), GRID[:3])
    runs = [name for name, _ in itertools.groupby(unit.scenario_id for unit in units)]
    assert runs == [key.scenario_id for key in GRID[:3]]
