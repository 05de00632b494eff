"""On the same trajectories the reward is that of the package's own evaluator."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from policysweep.datasets.tau2 import DOMAINS, load_tau2
from policysweep.domains.tau2 import installed, load_domain
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, tau2_pb2
from services.judge.tau2_reward import COMMUNICATE, DB, grade

from . import trajectories
from .support import needs_tau2
from .trajectories import SPOILED, Spoil, Spoiled, spoiled
from .upstream import Upstream

pytestmark = needs_tau2

UPSTREAM = Upstream() if installed() else None
ALL_WAYS = bool(os.environ.get("POLICYSWEEP_TAU2_ALL_WAYS"))
ABOUT_TELLING = frozenset(
    {trajectories.silent, trajectories.misspelt, trajectories.written_out, trajectories.told_beside_calls}
)
"""Ways that change nothing for a task without information."""


def tasks(domain: str) -> Sequence[tau2_pb2.Tau2Task]:
    return load_tau2(domain).tasks


def check(case: Spoiled) -> tuple[float, Counter[str]]:
    """Compare all that both say; the reward, and what it was made of."""
    assert UPSTREAM is not None
    task, domain = case.task, load_domain(case.task.domain)
    theirs_task = UPSTREAM.task(task)
    theirs = UPSTREAM.evaluate(theirs_task, case.episode, task.domain)
    ours = grade(task, case.episode, domain)
    said = f"{task.domain} {task.task_id} {case.how.__name__}"
    assert ours.reward == theirs.reward, said
    assert [each.matched for each in ours.actions] == UPSTREAM.matched(theirs_task, case.episode), said
    seen: Counter[str] = Counter()
    if theirs.reward_breakdown is not None:
        values = {each.criterion: each.value for each in ours.criteria}
        assert values[DB] == theirs.db_check.db_reward, said
        assert [each.met for each in ours.information] == [
            each.met for each in theirs.communicate_checks or []
        ], said
        seen.update(name for name, value in (("db", values[DB]), ("told", values[COMMUNICATE])) if not value)
    return ours.reward, seen


@pytest.mark.parametrize("domain", DOMAINS)
def test_gold_trajectories(domain: str) -> None:
    """All originals, sisters and controls; all of them are worth 1."""
    for task in tasks(domain):
        reward, _ = check(spoiled(task, load_domain(domain), trajectories.gold))
        assert reward == 1.0, task.task_id


def cases(domain: str) -> Iterator[tuple[tau2_pb2.Tau2Task, Spoil]]:
    """Each task spoilt in one of the ways that apply to it, in turn, or in all ways."""
    others = [how for how in SPOILED if how not in ABOUT_TELLING]
    turns = {True: itertools.cycle(SPOILED), False: itertools.cycle(others)}
    for task in tasks(domain):
        if ALL_WAYS:
            yield from ((task, how) for how in SPOILED)
        else:
            yield task, next(turns[bool(task.criteria.communicate_info)])


@pytest.mark.parametrize("domain", DOMAINS)
def test_spoilt_trajectories(domain: str) -> None:
    rewards: Counter[float] = Counter()
    lost: Counter[str] = Counter()
    for task, how in cases(domain):
        reward, seen = check(spoiled(task, load_domain(domain), how))
        rewards[reward] += 1
        lost += seen
    # A comparison of zeros, or of ones, would show nothing.
    assert min(rewards[0.0], rewards[1.0], lost["db"]) > 5
    assert lost["told"] > 1


BASES = (
    (),
    ("DB",),
    ("COMMUNICATE",),
    ("ACTION",),
    ("DB", "ACTION", "COMMUNICATE"),
    ("NL_ASSERTION",),
    ("DB", "NL_ASSERTION"),
    ("ENV_ASSERTION", "DB"),
)


@pytest.mark.parametrize("names", BASES)
@pytest.mark.parametrize("met", [True, False])
def test_every_basis(names: Sequence[str], met: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products over other bases, with the judge's word on assertions given to both."""
    assert UPSTREAM is not None
    _let_their_judge_say(met, monkeypatch)
    for domain, task_id in (("airline", "2"), ("airline", "7"), ("retail", "2"), ("airline", "0")):
        task = tau2_pb2.Tau2Task()
        task.CopyFrom(load_tau2(domain).task(task_id))
        theirs_task = UPSTREAM.task(task).model_copy(deep=True)
        task.criteria.reward_basis.extend(tau2_pb2.Tau2Criterion.Value(f"TAU2_CRITERION_{n}") for n in names)
        if names:
            theirs_task.evaluation_criteria.reward_basis = list(names)
        said = [judge_pb2.Tau2AssertionCheck(assertion=text, met=met) for text in task.criteria.nl_assertions]
        for how in (trajectories.gold, trajectories.dropped_write, trajectories.silent):
            case = spoiled(task, load_domain(domain), how)
            ours = grade(task, case.episode, load_domain(domain), said)
            theirs = UPSTREAM.evaluate(theirs_task, case.episode, domain, assertions=True)
            assert ours.reward == theirs.reward, (task_id, how.__name__)


def _let_their_judge_say(met: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from policysweep.domains.tau2.package import module

    nl = module("tau2.evaluator.evaluator_nl_assertions").NLAssertionsEvaluator
    check_class = module("tau2.data_model.simulation").NLAssertionCheck

    def evaluate(cls: Any, trajectory: Any, assertions: list[str]) -> list[Any]:
        return [check_class(nl_assertion=text, met=met, justification="") for text in assertions]

    monkeypatch.setattr(nl, "evaluate_nl_assertions", classmethod(evaluate))


def test_a_task_without_gold_actions_leaves_the_database_unchecked() -> None:
    assert UPSTREAM is not None
    task = tau2_pb2.Tau2Task()
    task.CopyFrom(load_tau2("airline").task("2"))
    theirs_task = UPSTREAM.task(task).model_copy(deep=True)
    case = spoiled(task, load_domain("airline"), trajectories.extra_write)
    task.criteria.ClearField("gold")
    theirs_task.evaluation_criteria.actions = None
    assert grade(task, case.episode, load_domain("airline")).reward == 1.0
    assert UPSTREAM.evaluate(theirs_task, case.episode, "airline").reward == 1.0


def test_the_agent_may_end_it_too() -> None:
    case = spoiled(load_tau2("airline").task("0"), load_domain("airline"), trajectories.gold)
    case.episode.end.reason = ep.END_REASON_RESOLVED
    assert check(case)[0] == 1.0
