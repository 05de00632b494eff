from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policysweep.report.streams.arms import domain_tasks
from policysweep.report.streams.comparisons import (
    difference,
    difference_json,
    gap_closed,
    gap_closed_json,
    over_generalisation_json,
)
from policysweep.report.streams.grid import Cube, pairs
from policysweep.report.streams.passes import counted_trials, group_json, pass_table

from .samples import made_inputs

SEVEN = np.arange(7)


def cube(*seeds: list[str]) -> Cube:
    """Seeds, each a list of trials, each a letter a task: P, F and . for missing."""
    letters = {"P": 1, "F": 0, ".": -1}
    return np.array([[[letters[each] for each in trial] for trial in seed] for seed in seeds], dtype=np.int8)


def test_trials_are_counted_by_seed_and_task() -> None:
    passes, trials = counted_trials(cube(["PF.", "P.."], ["FFF", "PPP"]))
    assert passes.tolist() == [[2, 0, 0], [1, 1, 1]]
    assert trials.tolist() == [[2, 1, 0], [2, 2, 2]]


def test_pairs_are_of_the_same_seed_trial_and_task() -> None:
    found = pairs(cube(["PPFF."]), cube(["PFPFP"]))
    assert (found.both, found.won, found.lost, found.neither, found.n) == (1, 1, 1, 1, 4)


def test_the_share_of_the_gap_closed_by_hand() -> None:
    none, oracle = cube(["FFFFFFF"], ["FFFFFFF"]), cube(["PPPPPPP"], ["PPPPPPF"])
    own = cube(["PPPPFFF"], ["PPPFFFF"])
    found = gap_closed(own, none, oracle, SEVEN, 1)
    # (4/7 + 3/7) / 2 of (7/7 + 6/7) / 2.
    assert found.value is not None
    assert found.value == pytest.approx(0.5 / (13 / 14))
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]


def test_the_gap_counts_only_where_all_three_are_defined() -> None:
    none, oracle = cube(["FFFFFFFF"]), cube(["PPPPPPP."])
    own = cube([".PPPFFFP"])
    assert gap_closed(own, none, oracle, np.arange(8), 1).value == pytest.approx(3 / 6)


@pytest.mark.parametrize(
    ("none", "oracle"), [("FFFPPPP", "PPPFFFF"), ("FFFPPPP", "FFFPPPP"), ("FFPPPPP", "PFFFPPP")]
)
def test_no_share_of_a_gap_that_may_be_nothing(none: str, oracle: str) -> None:
    found = gap_closed(cube(["PPPPPPP"]), cube([none]), cube([oracle]), SEVEN, 1)
    assert found.value is None
    assert "not shown to do better than no memory" in found.reason


def test_a_gap_whose_interval_touches_zero_is_named_with_it() -> None:
    found = gap_closed(cube(["PPPPPPP"]), cube(["FPPPPPF"]), cube(["PPPPPFP"]), SEVEN, 1)
    assert found.value is None
    assert "a gap of 0.14 [" in found.reason


def test_a_constant_gap_is_one() -> None:
    found = gap_closed(cube(["PPPPFFF"]), cube(["FFFFFFF"]), cube(["PPPPPPP"]), SEVEN, 1)
    assert found.value == pytest.approx(4 / 7)
    assert found.interval is not None


def test_a_gap_closed_is_withheld_when_any_side_has_too_few_trials() -> None:
    full, half = cube(["PPPPPPP"]), cube(["PPPP..."])
    found = gap_closed_json([full, full, half], SEVEN, 0.95)
    assert found["pass"] == []
    assert "4 of 7 planned trials are scored" in found["withheld"]


def test_a_difference_is_paired_by_seed_and_task() -> None:
    own, other = cube(["PPPPPP.", "PFFFFF."]), cube(["FFFFFFP", "PPPFFFP"])
    found = difference(own, other, SEVEN, 1)
    # Task by task: 1 - .5, .5 - .5, .5 - .5, .5, .5, .5; the last has no trial on one side.
    assert found.value == pytest.approx((0.5 + 0 + 0 + 0.5 + 0.5 + 0.5) / 6)
    assert pass_table(own, 2)[0, :6].tolist() == [1, 0, 0, 0, 0, 0]


def test_a_difference_tells_its_pairs_and_is_withheld_with_few() -> None:
    found = difference_json(cube(["PF.."]), cube(["FPPP"]), np.arange(4), 0.95)
    assert found["pairs"] == {"n": 2, "both": 0, "won": 1, "lost": 1, "neither": 0}
    assert found["pass"] == []
    assert "2 of 4 planned trials are scored on both sides: a coverage of 50.0%" in found["withheld"]


def test_over_generalisation_by_hand() -> None:
    tasks = domain_tasks(made_inputs().tasks.values())
    columns = tasks.group("controls")
    assert [tasks.ids[column] for column in columns] == ["c1", "c2"]
    shape = (1, 2, len(tasks.ids))
    own, none = np.ones(shape, dtype=np.int8), np.ones(shape, dtype=np.int8)
    own[0, :, columns[0]] = 0  # fails both trials of c1,
    none[0, 1, columns[0]] = 0  # of which no memory fails one as well
    found = over_generalisation_json(own, none, tasks, columns, 0.95)
    assert found["pairs"] == {"n": 4, "both": 2, "won": 0, "lost": 1, "neither": 1}
    assert found["rate"]["value"] == pytest.approx(1 / 4)
    assert found["of_passed_by_none"] == pytest.approx(1 / 3)
    assert "at least 6 task families" in found["rate"]["reason"]


def test_both_conventions_for_missing_trials() -> None:
    tasks = domain_tasks(made_inputs().tasks.values())
    columns = tasks.group("other_originals")
    rewards = np.ones((1, 2, len(tasks.ids)), dtype=np.int8)
    rewards[0, 1, columns[0]] = -1
    found = group_json(rewards, rewards, tasks, columns, 0.5)
    first, second = found["pass"]
    assert (first["value"], first["missing_as_failure"], first["left_out"]) == (
        1.0,
        pytest.approx(5.5 / 6),
        0,
    )
    assert (second["value"], second["missing_as_failure"], second["left_out"]) == (
        1.0,
        pytest.approx(5 / 6),
        1,
    )
    assert group_json(rewards, rewards, tasks, columns, 0.95)["pass"] == []


def test_families_hold_a_parent_with_its_sisters() -> None:
    tasks = domain_tasks(made_inputs().tasks.values())
    assert tasks.by_family["3"] == ("3", "3-1", "3-2", "3-3")
    assert [tasks.ids[column] for column in tasks.place(2)] == [f"{number}-2" for number in range(1, 8)]
    columns = [tasks.column[task_id] for task_id in ("1", "1-2", "2-1", "c1", "9")]
    first, sister, other, control, alone = tasks.families(columns)
    assert first == sister
    assert len({first, other, control, alone}) == 4


def _one_task(*trials: int) -> dict[str, Any]:
    """The figures of one original with these trials."""
    tasks = domain_tasks(made_inputs().tasks.values())
    rewards = np.full((1, len(trials), len(tasks.ids)), -1, dtype=np.int8)
    column = tasks.column["9"]
    rewards[0, :, column] = trials
    return group_json(rewards, rewards, tasks, [column], 0.75)


def test_one_success_and_three_failures_of_the_infrastructure_are_not_all_passed() -> None:
    found = _one_task(1, -1, -1, -1)
    assert found["pass"] == []
    assert "1 of 4 planned trials are scored: a coverage of 25.0%" in found["withheld"]


def test_pass_4_of_three_trials_is_undefined_and_said_so() -> None:
    fourth = _one_task(1, 1, 1, -1)["pass"][3]
    assert (fourth["value"], fourth["reason"], fourth["left_out"]) == (None, "defined for no task", 1)
    assert fourth["missing_as_failure"] == 0.0
