"""The plan of a stream run: derived, equal for all methods, complete."""

from __future__ import annotations

import pytest

from policysweep.errors import InputError
from policysweep.streams.inputs import inputs_of
from policysweep.streams.plan import (
    bank_id,
    initial_bank_id,
    planned_streams,
    stream_tasks,
    task_order,
    task_seed,
)
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

from .samples import inputs, manifest, planned, tasks

AFTER = stream_pb2.CONTROL_PLACEMENT_AFTER_FAMILY
END = stream_pb2.CONTROL_PLACEMENT_END
NONE = stream_pb2.CONTROL_PLACEMENT_NONE


def ids(seed: int, controls: stream_pb2.ControlPlacement.ValueType = AFTER) -> list[str]:
    return [task.task_id for task in task_order(tasks(), "airline", seed, controls)]


def test_streams_are_the_product_of_what_the_manifest_lists() -> None:
    streams = list(planned_streams(manifest()))
    assert len(streams) == 2 * 2 * 2
    assert len({stream.stream_id for stream in streams}) == 8
    assert [stream.trial for stream in streams] == [0] * 4 + [1] * 4
    assert all(len(stream.stream_id) == 32 for stream in streams)


def test_a_method_is_played_under_each_of_its_regimes() -> None:
    both = [pb.FEEDBACK_REGIME_REWARD, pb.FEEDBACK_REGIME_EXPLANATION]
    method = stream_pb2.StreamMethod(method=pb.MEMORY_METHOD_POLICY_BANK, regimes=both)
    streams = planned_streams(manifest(methods=[method], seeds=[0], trials=1))
    assert [stream.regime for stream in streams] == both


def test_the_order_is_a_shuffle_that_only_the_seed_decides() -> None:
    of = manifest()
    orders = {(stream.seed, tuple(task.task_id for task in listed)) for stream, listed in planned(of)}
    assert len(orders) == 2  # one for each seed: methods and trials have the same
    assert len({tuple(ids(seed)) for seed in range(20)}) > 10
    # Written down, so that no release changes the order of a run that was begun by another.
    assert ids(0) == ["4", "2", "2-1", "2-2", "c1", "1", "3"]


@pytest.mark.parametrize("seed", range(10))
def test_sisters_follow_their_parent_and_controls_the_family(seed: int) -> None:
    order = ids(seed)
    at = order.index("2")
    assert order[at : at + 4] == ["2", "2-1", "2-2", "c1"]
    assert sorted(order) == sorted(task.task_id for task in tasks())


def test_controls_at_the_end_stand_at_the_end() -> None:
    assert ids(3, END)[-1] == "c1"


def test_a_task_without_a_place_is_named() -> None:
    with pytest.raises(InputError, match="c1 have no place"):
        ids(0, NONE)
    orphan = [task for task in tasks() if task.task_id != "2"]
    with pytest.raises(InputError, match="2-1, 2-2, c1 have no place"):
        task_order(orphan, "airline", 0, AFTER)


def test_seeds_come_from_domain_task_seed_and_trial_alone() -> None:
    by_trial: dict[tuple[int, int], set[tuple[tuple[str, int], ...]]] = {}
    for stream, listed in planned(manifest()):
        seeds = tuple((task.task_id, task.seed) for task in listed)
        by_trial.setdefault((stream.seed, stream.trial), set()).add(seeds)
    assert [len(each) for each in by_trial.values()] == [1, 1, 1, 1]
    assert len({task_seed(*key) for key in [("a", "1", 0, 0), ("a", "1", 0, 1), ("a", "1", 1, 0)]}) == 3
    assert 0 <= task_seed("airline", "1", 0, 0) < 2**31


def test_unit_ids_differ_between_streams() -> None:
    units = [task.unit_id for _, listed in planned(manifest()) for task in listed]
    assert len(units) == len(set(units)) == 8 * 7


def test_positions_count_from_zero() -> None:
    stream = next(planned_streams(manifest()))
    assert [task.position for task in stream_tasks(manifest(), inputs(), stream)] == list(range(7))


def test_banks_are_named_after_the_namespace() -> None:
    of = manifest()
    none, learning = list(planned_streams(of))[:2]
    assert bank_id(of, none) == ""
    assert bank_id(of, learning) == f"small-1/{learning.stream_id}"
    assert initial_bank_id(of, learning) == "small-1/airline/policy_bank/m0"


def test_other_tasks_make_other_streams() -> None:
    one, other = manifest(), manifest()
    other.domains[0].digest = "e"
    first = {stream.stream_id for stream in planned_streams(one)}
    assert first.isdisjoint(stream.stream_id for stream in planned_streams(other))


def test_a_domain_has_its_own_tasks_alone() -> None:
    assert inputs_of(tasks(), []).of_domain("retail") == []
