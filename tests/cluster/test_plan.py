"""The faults of a run: the same for the same seed, each kind of process among them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.cluster.disturbing import KINDS, STREAMS, SWEEP, plan

SEEDS = range(40)


@pytest.mark.parametrize("kills", [1, 3])
def test_each_kind_is_killed_as_often_as_asked(kills: int) -> None:
    for seed in SEEDS:
        faults = plan(seed, kills, store_restarts=2)
        killed = Counter(fault.kind for fault in faults if fault.what == "kill")
        assert killed == dict.fromkeys(KINDS, kills)
        others = Counter((fault.what, fault.kind) for fault in faults if fault.what != "kill")
        assert others == {
            ("preempt", "driver"): 1,
            ("restart", "store"): 2,
            ("add", "agent"): 1,
            ("drain", "agent"): 1,
        }


def test_a_replica_comes_before_one_goes_and_the_judge_falls_last() -> None:
    for seed in SEEDS:
        sweep = [fault for fault in plan(seed, 2, 1) if fault.work == SWEEP]
        done = [fault.what for fault in sweep]
        assert done.index("add") < done.index("drain")
        assert sweep[-1].kind == "judge"


def test_faults_fall_within_the_work_and_in_order() -> None:
    for seed in SEEDS:
        for work in (SWEEP, STREAMS):
            shares = [fault.share for fault in plan(seed, 3, 2) if fault.work == work]
            assert all(before < after for before, after in pairwise(shares))
            assert shares[0] > 0
            assert shares[-1] < 0.9


def test_a_seed_is_a_plan() -> None:
    assert plan(7, 2, 1) == plan(7, 2, 1)
    assert plan(7, 2, 1) != plan(8, 2, 1)
