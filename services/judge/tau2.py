"""Grades a tau2-bench episode: the judge model for assertions where they are wanted, tools for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from policysweep.domains.tau2 import load_domain, loaded_domain
from policysweep.errors import InputError
from policysweep.v1 import judge_pb2
from services.judge.asking import Interrogator, Tally
from services.judge.tau2_assertions import judge_assertions
from services.judge.tau2_reward import grade, wants_assertions


async def judge_tau2(
    interrogator: Interrogator, request: judge_pb2.JudgeTau2Request, seconds_left: Callable[[], float]
) -> judge_pb2.Tau2Grade:
    """The grade of an episode. `seconds_left` tells what the next model call may take.

    Raises InputError for a request that cannot be graded, and what the model raises.
    """
    check_request(request)
    task, episode = request.task, request.episode
    domain = loaded_domain(task.domain)
    if domain is None:
        # The first episode of a domain imports the package and reads its database, beside the event loop.
        domain = await asyncio.to_thread(load_domain, task.domain)
    tally = Tally()
    assertions: Sequence[judge_pb2.Tau2AssertionCheck] = ()
    if wants_assertions(task, episode, always=request.judge_assertions):
        assertions = await judge_assertions(
            interrogator, task.criteria.nl_assertions, episode, request.seed, seconds_left, tally
        )
    found = grade(task, episode, domain, assertions)
    found.usage.CopyFrom(tally.usage)
    found.rehearsal, found.unusable_answers = tally.rehearsal, tally.unusable
    return found


def check_request(request: judge_pb2.JudgeTau2Request) -> None:
    """Refuse what cannot be graded. Raises InputError that names the field."""
    if not request.task.domain or not request.task.task_id:
        raise InputError("JudgeTau2: task.domain and task.task_id must not be empty")
    if not request.episode.messages:
        raise InputError("JudgeTau2: episode.messages must not be empty: there is nothing to grade")
    wanted = f"{request.task.domain}-{request.task.task_id}"
    if request.episode.scenario_id != wanted:
        raise InputError(
            f"JudgeTau2: the episode is of {request.episode.scenario_id!r}, not of the task that came with "
            f"it, {wanted!r}"
        )
