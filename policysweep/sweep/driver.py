"""The driver of a sweep: from a sweep file to a run with all its records.

    sweep file -> data set -> services -> manifest -> ledger -> plan -> runner

Everything that decides results is frozen in the manifest before the first unit starts.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policysweep.clock import now
from policysweep.datasets.load import Dataset, load, require_worlds
from policysweep.errors import PolicysweepError
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import Credentials
from policysweep.sweep import services
from policysweep.sweep.agent_banks import agent_banks, check_memories
from policysweep.sweep.backlog import Backlog
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judging import propose
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.manifest import build_manifest
from policysweep.sweep.metrics import SWEEP_METRICS
from policysweep.sweep.plan import WHOLE, Shard, in_shard, plan_units, scenario_keys
from policysweep.sweep.runner import Progress, Runner, RunnerSettings, Tally
from policysweep.sweep.selection import select_scenarios
from policysweep.sweep.spec import SweepSpec
from policysweep.sweep.spec_fields import parse_rubric
from policysweep.v1 import run_pb2, scenario_pb2


@dataclass(frozen=True, slots=True)
class SweepInputs:
    """What a sweep plays, with what the manifest says of it."""

    info: run_pb2.DatasetInfo
    inputs: RunInputs


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an invocation ended."""

    progress: Progress
    backlog: Backlog

    @property
    def complete(self) -> bool:
        """Whether every unit of the shard has a record."""
        unsettled = self.progress.total("failed") + self.backlog.skipped.total()
        return unsettled == 0


def load_inputs(spec: SweepSpec) -> SweepInputs:
    """The scenarios that the sweep plays and their worlds. Raises InputError."""
    dataset = load(spec.dataset.source, worlds=Path(spec.dataset.worlds) if spec.dataset.worlds else None)
    scenarios = select_scenarios(dataset.scenarios, spec.scenarios)
    tasks = sorted({scenario.task_id for scenario in scenarios})
    if not dataset.worlds.keys() >= set(tasks):
        require_worlds(dataset)
    return SweepInputs(
        _dataset_info(dataset, len(scenarios), len(tasks)),
        RunInputs(scenarios, {task: dataset.worlds[task] for task in tasks}),
    )


def _dataset_info(dataset: Dataset, scenarios: int, tasks: int) -> run_pb2.DatasetInfo:
    return run_pb2.DatasetInfo(
        name=dataset.name,
        digest=dataset.digest,
        scenarios=scenarios,
        tasks=tasks,
        rehearsal=dataset.rehearsal,
    )


class Driver:
    """Runs one shard of a sweep against a store."""

    def __init__(
        self,
        spec: SweepSpec,
        played: SweepInputs,
        shard: Shard = WHOLE,
        on_event: Callable[[str], None] = print,
        *,
        credentials: Credentials | None = None,
        make_runner: Callable[..., Runner] = Runner,
    ) -> None:
        """With `credentials` all services are called over TLS, and those started here serve it.

        `make_runner` lets the benchmarks put a runner in place that measures itself.
        """
        self._spec = spec
        self._played = played
        self._shard = shard
        self.on_event = on_event
        self._credentials = credentials
        self._make_runner = make_runner
        self.progress = Progress()
        self.judges: Mapping[str, str] = {}
        """gRPC target of each judge by name, once the services run."""

    @property
    def scenarios(self) -> Sequence[scenario_pb2.Scenario]:
        """The scenarios that are played."""
        return self._played.inputs.scenarios

    async def run(self, ledger: RunLedger, launcher: Launcher) -> Outcome:
        """Start what is missing, begin or resume the run, run the shard's open units."""
        tls = self._credentials.files if self._credentials else None
        async with Channels(self._credentials) as channels:
            endpoints = await services.start_services(self._spec, launcher, tls)
            self.judges = await services.start_judges(
                self._spec.judges, launcher, endpoints.rehearsal, tls=tls
            )
            await self._check_judges(ledger, channels)
            manifest = await self._manifest(endpoints, channels)
            for note in await ledger.begin(manifest, self._played.inputs):
                self.on_event(note)
            done = await ledger.done_units()
            self._count(manifest, done)
            SWEEP_METRICS.watch(self._spec.name, "play", self.progress)
            runner = self._runner(manifest, endpoints, ledger, channels)
            try:
                backlog = await runner.run(self._open_units(manifest, done))
            except* PolicysweepError as group:
                # One is enough to tell: the others fell to the same cause, say a store that is full.
                raise first_error(group) from group
        return Outcome(self.progress, backlog)

    async def _check_judges(self, ledger: RunLedger, channels: Channels) -> None:
        """Raise before the first conversation what judging would raise after the last one."""
        if self.judges:
            clients = [JudgeClient(name, target, channels) for name, target in self.judges.items()]
            await propose(ledger.verdicts, clients, parse_rubric(self._spec.rubric))

    async def _manifest(self, endpoints: services.Endpoints, channels: Channels) -> run_pb2.RunManifest:
        agents, simulators, banks = await asyncio.gather(
            services.agent_infos(endpoints, channels),
            services.simulator_infos(endpoints, channels),
            agent_banks(self._spec.agents, channels),
        )
        check_memories(agents, banks)
        return build_manifest(self._spec, self._played.info, agents, simulators, banks, now())

    def _units(self, manifest: run_pb2.RunManifest) -> Iterator[run_pb2.Unit]:
        keys = scenario_keys(self._played.inputs.scenarios)
        return (unit for unit in plan_units(manifest, keys) if in_shard(unit.unit_id, self._shard))

    def _open_units(self, manifest: run_pb2.RunManifest, done: set[str]) -> Iterator[run_pb2.Unit]:
        return (unit for unit in self._units(manifest) if unit.unit_id not in done)

    def _count(self, manifest: run_pb2.RunManifest, done: set[str]) -> None:
        agents = self.progress.agents
        agents.update({agent.name: Tally() for agent in self._spec.agents})
        for unit in self._units(manifest):
            agents[unit.agent].planned += 1
            agents[unit.agent].done_before += unit.unit_id in done

    def _runner(
        self,
        manifest: run_pb2.RunManifest,
        endpoints: services.Endpoints,
        ledger: RunLedger,
        channels: Channels,
    ) -> Runner:
        spec = self._spec
        return self._make_runner(
            scenarios={each.scenario_id: each for each in self._played.inputs.scenarios},
            worlds=self._played.inputs.worlds,
            agent_targets=endpoints.agents,
            banks={agent.name: agent.bank for agent in manifest.agents if agent.HasField("bank")},
            simulator_targets=endpoints.simulators,
            limits=spec.limits.message(),
            settings=runner_settings(spec),
            sink=ledger,
            channels=channels,
            progress=self.progress,
            on_event=self.on_event,
        )


def runner_settings(spec: SweepSpec) -> RunnerSettings:
    """How the units of a sweep are run and judged."""
    return RunnerSettings(
        concurrency=spec.concurrency,
        max_attempts=spec.max_attempts,
        unit_seconds=spec.limits.unit_seconds,
        outage_seconds=spec.outage_seconds,
    )


def first_error(group: BaseExceptionGroup[PolicysweepError]) -> PolicysweepError:
    """One error out of a group."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first


def logs_folder(store_url: str, run: str) -> Path:
    """Where the local services of a run log: beside a local run, else in the system's temporary folder."""
    folder = local_folder(store_url, run)
    return (folder or Path(tempfile.gettempdir()) / "policysweep" / run) / "logs"


def local_folder(store_url: str, run: str) -> Path | None:
    """The folder of a run in a store that is a local directory; None for any other store."""
    path = store_url.removeprefix("file://")
    return None if "://" in path else Path(path) / run
