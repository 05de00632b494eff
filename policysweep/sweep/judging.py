"""The judge stage: asks each judge for what is missing on each conversation, and for nothing else.

A piece of work is one judge and one unit; it asks for all panels without a verdict at once, so that they
share the judge's prefix cache. Verdicts are kept as they come: when a panel fails, exactly that panel is
asked again. A conversation is never played again because of a judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from policysweep import errors
from policysweep.sweep.backlog import Backlog
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import WHOLE, Shard, in_shard
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.runner import Progress, RunnerSettings, Tally, failed_attempt
from policysweep.sweep.verdicts import VerdictLedger, panel_keys
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

_CHARACTERS_PER_TOKEN = 4
_JUDGED_FAULTS = (ep.FAULT_PARTY_UNSPECIFIED, ep.FAULT_PARTY_AGENT)
"""Conversations that count: those that ended cleanly or by a fault of the agent."""


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What is missing, and what it will cost."""

    missing: Mapping[tuple[str, str], list[str]]
    """Panels without a verdict, by judge and unit id; in the order of judges, then unit ids."""
    units: Mapping[str, run_pb2.Unit]
    prompt_characters: int
    """Policy, task and transcript over all calls; the rubric comes on top."""

    @property
    def calls(self) -> int:
        """Model calls, one a panel, when every answer can be used."""
        return sum(len(panels) for panels in self.missing.values())

    @property
    def tokens(self) -> int:
        """Prompt tokens that the calls take at least."""
        return self.prompt_characters // _CHARACTERS_PER_TOKEN

    def describe(self) -> str:
        """One sentence for the user, before anything is spent."""
        if not self.missing:
            return "Judging: every verdict is there."
        judges = list(dict.fromkeys(judge for judge, _ in self.missing))
        panels = list(dict.fromkeys(panel for asked in self.missing.values() for panel in asked))
        return (
            f"Judging: {self.calls:,} calls and at least {self.tokens:,} prompt tokens, by "
            f"{', '.join(judges)} on {', '.join(panels)}."
        )


class JudgeStage:
    """Judges the conversations of a run, or of one shard of it."""

    def __init__(
        self,
        ledger: RunLedger,
        scenarios: Iterable[scenario_pb2.Scenario],
        clients: Sequence[JudgeClient],
        settings: RunnerSettings,
        progress: Progress,
    ) -> None:
        self._ledger = ledger
        self._verdicts: VerdictLedger = ledger.verdicts
        self._scenarios = {scenario.scenario_id: scenario for scenario in scenarios}
        self._clients = {client.name: client for client in clients}
        self._settings = settings
        self._progress = progress
        self._goals: dict[str, asyncio.Task[Sequence[judge_pb2.Goal]]] = {}
        self._missing: dict[tuple[str, str], list[str]] = {}
        self._judging = run_pb2.Judging()

    async def plan(
        self, rubric: judge_pb2.RubricRef, panels: Sequence[str] = (), shard: Shard = WHOLE
    ) -> JudgePlan:
        """Find out what is missing on `panels`, or on all. From then on `rubric` counts.

        Raises InputError for a rubric or panel that a judge does not have, ManifestMismatch for a judge
        that was another one.
        """
        served = [await client.rubric(rubric, panels) for client in self._clients.values()]
        for client, other in zip(self._clients.values(), served, strict=True):
            if other != served[0]:
                raise errors.InputError(f"judge {client.name} has another text of rubric {rubric.name}")
        infos = {name: await client.info() for name, client in self._clients.items()}
        self._judging = await self._verdicts.begin(served[0], infos)
        wanted = [
            key
            for key in panel_keys(self._judging)
            if key.judge in self._clients and (not panels or key.panel in panels)
        ]
        done = {key: await self._verdicts.judged_units(key) for key in wanted}
        units: dict[str, run_pb2.Unit] = {}
        characters = 0
        async for record in self._records(shard):
            unit = record.unit.unit_id
            before = len(self._missing)
            for key in wanted:
                if unit not in done[key]:
                    self._missing.setdefault((key.judge, unit), []).append(key.panel)
                    characters += self._characters(record)
            if len(self._missing) > before:
                units[unit] = record.unit
        return JudgePlan(self._missing, units, characters)

    async def _records(self, shard: Shard) -> AsyncIterator[run_pb2.UnitRecord]:
        async with aclosing(self._ledger.read_records()) as records:
            async for record in records:
                if in_shard(record.unit.unit_id, shard) and record.episode.end.fault in _JUDGED_FAULTS:
                    yield record

    def _characters(self, record: run_pb2.UnitRecord) -> int:
        scenario = self._scenarios[record.unit.scenario_id]
        policy = scenario.policy
        texts = [policy.primary.text, *(document.text for document in policy.related), scenario.task.detail]
        return sum(map(len, texts)) + sum(len(message.content) for message in record.episode.messages)

    async def run(self, plan: JudgePlan) -> Backlog:
        """Ask for all that is missing; returns once each piece is judged, failed or skipped."""
        self._progress.agents = {name: Tally() for name in self._clients}
        for judge, _ in plan.missing:
            self._progress.agents[judge].planned += 1
        backlog = Backlog(
            self._pieces(plan),
            max_attempts=self._settings.max_attempts,
            outage_seconds=self._settings.outage_seconds,
        )
        self._progress.backlog = backlog
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.concurrency):
                group.create_task(self._work(backlog))
        return backlog

    def _pieces(self, plan: JudgePlan) -> Iterator[run_pb2.Unit]:
        """For the backlog a piece is a unit whose agent is the judge."""
        for judge, unit_id in plan.missing:
            piece = run_pb2.Unit()
            piece.CopyFrom(plan.units[unit_id])
            piece.agent = judge
            yield piece

    async def _work(self, backlog: Backlog) -> None:
        while (attempt := await backlog.take()) is not None:
            tally = self._progress.agents[attempt.unit.agent]
            try:
                await self._judge(attempt.unit, tally)
            except errors.PolicysweepError as error:
                if isinstance(error, errors.StoreError):
                    raise
                attempt.failures.append(failed_attempt(error))
                again = backlog.failed(attempt, error)
                tally.retried += again
                tally.failed += not again
                continue
            tally.recorded += 1
            backlog.succeeded(attempt)

    async def _judge(self, piece: run_pb2.Unit, tally: Tally) -> None:
        """Ask one judge for the missing panels of one unit. Raises the first failure, verdicts kept."""
        missing = self._missing[piece.agent, piece.unit_id]
        scenario = self._scenarios[piece.scenario_id]
        failure: errors.PolicysweepError | None = None
        goals: Sequence[judge_pb2.Goal] = ()
        asked = list(missing)
        if self._goal_panels.intersection(asked):
            try:
                goals = await self._goals_of(scenario)
            except errors.PolicysweepError as error:
                failure = error
                asked = [panel for panel in asked if panel not in self._goal_panels]
        if asked:
            failure = await self._ask(piece, scenario, asked, goals, tally) or failure
        if failure is not None:
            raise failure

    async def _ask(
        self,
        piece: run_pb2.Unit,
        scenario: scenario_pb2.Scenario,
        panels: Sequence[str],
        goals: Sequence[judge_pb2.Goal],
        tally: Tally,
    ) -> errors.PolicysweepError | None:
        request = judge_pb2.JudgeEpisodeRequest(
            scenario=scenario,
            episode=(await self._record(piece.unit_id)).episode,
            rubric=self._judging.rubric.ref,
            panels=panels,
            goals=goals,
            seed=piece.seed,
        )
        response = await self._clients[piece.agent].judge(request, self._settings.unit_seconds)
        for verdict in response.panels:
            await self._keep(piece, verdict, tally)
        return next(map(_error, response.failures), None)

    async def _keep(self, piece: run_pb2.Unit, verdict: judge_pb2.PanelVerdict, tally: Tally) -> None:
        now = Timestamp()
        now.GetCurrentTime()
        record = run_pb2.VerdictRecord(
            unit_id=piece.unit_id,
            judge=piece.agent,
            rubric=self._judging.rubric.ref,
            verdict=verdict,
            recorded_at=now,
        )
        tally.duplicates += not await self._verdicts.write(record)
        tally.tokens += verdict.usage.prompt_tokens + verdict.usage.completion_tokens
        self._missing[piece.agent, piece.unit_id].remove(verdict.panel)

    async def _record(self, unit_id: str) -> run_pb2.UnitRecord:
        async with aclosing(self._ledger.scan_records([unit_id])) as records:
            async for record in records:
                if not isinstance(record, DamagedRecord):
                    return record
        raise errors.StoreError(f"the record of unit {unit_id} cannot be read: see policysweep verify")

    @property
    def _goal_panels(self) -> set[str]:
        return {metric.panel for metric in self._judging.rubric.metrics if metric.derived}

    async def _goals_of(self, scenario: scenario_pb2.Scenario) -> Sequence[judge_pb2.Goal]:
        """The goals of a task: extracted once, by the first judge, for all agents and judges."""
        task = self._goals.get(scenario.task_id)
        if task is None or (task.done() and task.exception() is not None):
            task = self._goals[scenario.task_id] = asyncio.create_task(self._find_goals(scenario))
        return await asyncio.shield(task)

    async def _find_goals(self, scenario: scenario_pb2.Scenario) -> Sequence[judge_pb2.Goal]:
        known = await self._verdicts.read_goals(scenario.task_id)
        if known is None:
            client = next(iter(self._clients.values()))
            response = await client.extract_goals(scenario, self._settings.unit_seconds)
            known = await self._verdicts.write_goals(
                run_pb2.TaskGoals(task_id=scenario.task_id, goals=response.goals, judge=await client.info())
            )
        return known.goals


def _error(failure: judge_pb2.PanelFailure) -> errors.PolicysweepError:
    retry_after = failure.retry_after_seconds if failure.HasField("retry_after_seconds") else None
    return errors.by_reason(failure.reason)(
        f"panel {failure.panel}: {failure.message}", retry_after=retry_after
    )
