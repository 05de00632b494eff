"""The customer's goals of each task: read from the run, or extracted once by the judge that needs them first.

Whoever needs the goals of a task while they are being extracted waits for them. A failure is the failure of
the judge that was asked: another judge asks its own model, so a judge that is down cannot hold up the others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

from policysweep.errors import PolicysweepError
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.verdicts import VerdictLedger
from policysweep.v1 import episode_pb2, judge_pb2, run_pb2, scenario_pb2


class GoalBook:
    """Goals by task, for the workers of one event loop."""

    def __init__(
        self,
        verdicts: VerdictLedger,
        seconds: float,
        on_extracted: Callable[[str, episode_pb2.Usage], None],
    ) -> None:
        """`seconds` is the deadline of one extraction; `on_extracted` gets the judge and what it took."""
        self._verdicts = verdicts
        self._seconds = seconds
        self._on_extracted = on_extracted
        self._asked: dict[tuple[str, str], asyncio.Task[Sequence[judge_pb2.Goal]]] = {}
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, scenario: scenario_pb2.Scenario, client: JudgeClient) -> Sequence[judge_pb2.Goal]:
        """The goals of the scenario's task. Raises what the judge raises.

        A failure that trying again can mend is forgotten; any other stands, so that the conversations of a
        task do not ask in vain one after another.
        """
        key = (client.name, scenario.task_id)
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._find(scenario, client))
        try:
            return await task
        except PolicysweepError as error:
            if error.retryable and self._asked.get(key) is task:
                del self._asked[key]
            raise

    async def _find(self, scenario: scenario_pb2.Scenario, client: JudgeClient) -> Sequence[judge_pb2.Goal]:
        async with self._one_at_a_time[scenario.task_id]:
            known = await self._verdicts.read_goals(scenario.task_id)
            if known is None:
                known = await self._verdicts.write_goals(await self._extract(scenario, client))
        return known.goals

    async def _extract(self, scenario: scenario_pb2.Scenario, client: JudgeClient) -> run_pb2.TaskGoals:
        response = await client.extract_goals(scenario, self._seconds)
        self._on_extracted(client.name, response.usage)
        return run_pb2.TaskGoals(
            task_id=scenario.task_id,
            goals=response.goals,
            judge=await client.info(),
            judge_name=client.name,
            usage=response.usage,
        )
