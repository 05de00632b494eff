"""The judge stage: asks each judge for what is missing on each conversation, and for nothing else.

    propose -> plan -> run

A piece of work is one judge and one unit; it asks for all panels without a verdict at once, so that they
share the judge's prefix cache. Verdicts are kept as they come: when a panel fails, exactly that panel is
asked again. A conversation is never played again because of a judge, and no judge waits for another one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing

from policysweep import errors
from policysweep.clock import now
from policysweep.sweep.backlog import Attempt, Backlog
from policysweep.sweep.goals import GoalBook
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judge_plan import JudgePlan, PlanBuilder, goal_panels, rubric_changes, rubric_name
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import WHOLE, Shard, in_shard
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.runner import Progress, RunnerSettings, Tally, failed_attempt
from policysweep.sweep.verdicts import VerdictLedger, goals_name, is_judged, panel_keys
from policysweep.v1 import episode_pb2, judge_pb2, run_pb2, scenario_pb2


async def propose(
    verdicts: VerdictLedger,
    clients: Iterable[JudgeClient],
    rubric: judge_pb2.RubricRef,
    panels: Sequence[str] = (),
) -> run_pb2.Judging:
    """What the run would be judged by. Asks every judge, writes nothing.

    Raises InputError for a rubric or panel that a judge does not have and for judges with different texts of
    it, ManifestMismatch for a judge that was another one, and what a judge raises that cannot be asked.
    """
    served = {client.name: await client.rubric(rubric, panels) for client in clients}
    (first, text), *others = served.items()
    for name, other in others:
        if other != text:
            raise errors.InputError(
                f"judges {first} and {name} have different texts of {rubric_name(text)}: "
                "give them the same rubric files"
            )
    infos = {client.name: await client.info() for client in clients}
    return await verdicts.proposed(text, infos)


class JudgeStage:
    """Judges the conversations of a run, or of one shard of it."""

    def __init__(
        self,
        ledger: RunLedger,
        scenarios: Iterable[scenario_pb2.Scenario],
        clients: Sequence[JudgeClient],
        settings: RunnerSettings,
        progress: Progress,
        on_event: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._verdicts = ledger.verdicts
        self._scenarios = {scenario.scenario_id: scenario for scenario in scenarios}
        self._clients = {client.name: client for client in clients}
        self._settings = settings
        self._progress = progress
        self._on_event = on_event
        self._goals = GoalBook(self._verdicts, settings.unit_seconds, self._count_goals)
        self._judging = run_pb2.Judging()
        self._digests: Mapping[str, str] = {}
        self._goal_panels: set[str] = set()
        self._missing: dict[tuple[str, str], list[str]] = {}
        self.failures: Counter[tuple[str, str]] = Counter()
        """Conversations given up in this invocation, by judge and reason of the last failure."""

    @property
    def missing(self) -> int:
        """Verdicts of the plan that are still missing."""
        return sum(map(len, self._missing.values()))

    async def plan(
        self, rubric: judge_pb2.RubricRef, panels: Sequence[str] = (), shard: Shard = WHOLE
    ) -> JudgePlan:
        """Find out what is missing on `panels`, or on all. Writes nothing. Raises what `propose` raises."""
        standing = await self._verdicts.read_judging()
        judging = await propose(self._verdicts, self._clients.values(), rubric, panels)
        wanted = [
            key
            for key in panel_keys(judging)
            if key.judge in self._clients and (not panels or key.panel in panels)
        ]
        done = {key: await self._verdicts.judged_units(key) for key in wanted}
        builder = PlanBuilder(judging, done, self._scenarios)
        units = (await self._ledger.record_names()).unit_ids
        lacking = [unit for unit in units if in_shard(unit, shard) and builder.lacks(unit)]
        async for record in self._read(lacking):
            if is_judged(record.episode):
                builder.add(record)
        changes = rubric_changes(standing.rubric if standing else None, judging.rubric)
        return builder.plan(await self._tasks_with_goals(), list(changes))

    async def _tasks_with_goals(self) -> set[str]:
        names = await self._verdicts.goals_names()
        tasks = {scenario.task_id for scenario in self._scenarios.values()}
        return {task for task in tasks if goals_name(task) in names}

    async def run(self, plan: JudgePlan) -> Backlog:
        """Ask for all that is missing; returns once each piece is judged, failed or skipped.

        From the beginning on, the rubric of the plan counts. Cancelling stops at once and loses only what is
        in flight. A StoreError ends it: without a ledger no verdict can be kept.
        """
        await self._verdicts.begin(plan.judging)
        self._judging = plan.judging
        self._digests = {panel.key: panel.digest for panel in plan.judging.rubric.panels}
        self._goal_panels = goal_panels(plan.judging.rubric)
        self._missing = {piece: list(panels) for piece, panels in plan.missing.items()}
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
            for _ in range(min(self._settings.concurrency, len(plan.missing))):
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
            failures = await self._judge(backlog, attempt, tally)
            if failures:
                self._failed(backlog, attempt, tally, _decisive(failures))
            else:
                tally.recorded += 1
                backlog.succeeded(attempt)

    def _failed(
        self, backlog: Backlog, attempt: Attempt, tally: Tally, error: errors.PolicysweepError
    ) -> None:
        if isinstance(error, errors.StoreError):
            raise error
        attempt.failures.append(failed_attempt(error))
        tally.errors[error.party, error.reason] += 1
        if backlog.failed(attempt, error):
            tally.retried += 1
            return
        tally.failed += 1
        cause = (attempt.unit.agent, error.reason)
        if not self.failures[cause]:
            # The others fell to the same cause, as a rule: they are counted.
            self._on_event(f"unit {attempt.unit.unit_id} lacks verdicts: {error}")
        self.failures[cause] += 1

    async def _judge(
        self, backlog: Backlog, attempt: Attempt, tally: Tally
    ) -> Sequence[errors.PolicysweepError]:
        """Ask one judge for the missing panels of one unit and keep what comes; gives what failed."""
        piece = attempt.unit
        client, scenario = self._clients[piece.agent], self._scenarios[piece.scenario_id]
        asked = list(self._missing[piece.agent, piece.unit_id])
        goals: Sequence[judge_pb2.Goal] = ()
        failures: list[errors.PolicysweepError] = []
        if self._goal_panels.intersection(asked):
            try:
                goals = await self._goals.of(scenario, client)
            except errors.PolicysweepError as error:
                failures.append(error)
                asked = [panel for panel in asked if panel not in self._goal_panels]
        if not asked:
            return failures
        try:
            response = await self._ask(piece, asked, goals)
        except errors.PolicysweepError as error:
            return [*failures, error]
        if response.panels:
            backlog.answered(attempt)
        for verdict in response.panels:
            await self._keep(piece, verdict, tally)
        return [*failures, *(_error(client.name, failure) for failure in response.failures)]

    async def _ask(
        self, piece: run_pb2.Unit, panels: Sequence[str], goals: Sequence[judge_pb2.Goal]
    ) -> judge_pb2.JudgeEpisodeResponse:
        async with aclosing(self._read([piece.unit_id])) as records:
            record = await anext(records)
        request = judge_pb2.JudgeEpisodeRequest(
            scenario=self._scenarios[piece.scenario_id],
            episode=record.episode,
            rubric=self._judging.rubric.ref,
            panels=panels,
            goals=goals,
            seed=piece.seed,
        )
        response = await self._clients[piece.agent].judge(request, self._settings.unit_seconds)
        self._check(piece.agent, panels, response)
        return response

    def _check(self, judge: str, asked: Sequence[str], response: judge_pb2.JudgeEpisodeResponse) -> None:
        """ServiceContractError for an answer to another question: it must never count as this one's."""
        answered = [*(each.panel for each in response.panels), *(each.panel for each in response.failures)]
        if sorted(answered) != sorted(asked):
            raise errors.ServiceContractError(
                f"judge {judge} was asked for panels {', '.join(asked)} and answered {', '.join(answered)}"
            )
        for verdict in response.panels:
            if verdict.panel_digest != self._digests[verdict.panel]:
                raise errors.ServiceContractError(
                    f"judge {judge} has another text of panel {verdict.panel} than when the judging began: "
                    "judge the run again"
                )

    async def _keep(self, piece: run_pb2.Unit, verdict: judge_pb2.PanelVerdict, tally: Tally) -> None:
        record = run_pb2.VerdictRecord(
            unit_id=piece.unit_id,
            judge=piece.agent,
            rubric=self._judging.rubric.ref,
            verdict=verdict,
            recorded_at=now(),
        )
        await self._verdicts.write(record)
        tally.tokens += _tokens(verdict.usage)
        self._missing[piece.agent, piece.unit_id].remove(verdict.panel)

    def _count_goals(self, judge: str, usage: episode_pb2.Usage) -> None:
        self._progress.agents[judge].tokens += _tokens(usage)

    async def _read(self, unit_ids: Iterable[str]) -> AsyncGenerator[run_pb2.UnitRecord]:
        async with aclosing(self._ledger.scan_records(unit_ids)) as records:
            async for record in records:
                if isinstance(record, DamagedRecord):
                    raise errors.StoreError(
                        f"the record of unit {record.unit_id} is damaged: see policysweep verify"
                    )
                yield record


def _decisive(failures: Sequence[errors.PolicysweepError]) -> errors.PolicysweepError:
    """The failure that decides what becomes of a piece: one that ends the stage, else one that may pass."""
    return max(failures, key=lambda error: (isinstance(error, errors.StoreError), error.retryable))


def _error(judge: str, failure: judge_pb2.PanelFailure) -> errors.PolicysweepError:
    kind = errors.by_reason(failure.reason)
    if failure.retryable and not kind.retryable:
        kind = errors.InfrastructureError  # a reason that we do not know
    retry_after = failure.retry_after_seconds if failure.HasField("retry_after_seconds") else None
    return kind(f"judge {judge}, panel {failure.panel}: {failure.message}", retry_after=retry_after)


def _tokens(usage: episode_pb2.Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
