"""The driver of a stream run: from a stream file to a run with all its records.

    stream file -> tasks -> services -> manifest -> ledger -> plan -> runner

Everything that decides results is frozen in the manifest before the first task is played.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import policysweep
from policysweep.clock import now
from policysweep.errors import InputError, PolicysweepError
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import Credentials
from policysweep.streams import services
from policysweep.streams.banks import RunBanks
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.manifest import FORMAT
from policysweep.streams.plan import planned_streams, stream_tasks
from policysweep.streams.progress import StreamProgress
from policysweep.streams.runner import PlannedStream, StreamRunner, row_name
from policysweep.streams.selection import Played
from policysweep.streams.spec import StreamSpec
from policysweep.streams.step import Step
from policysweep.sweep.driver import first_error
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.manifest import message_differences
from policysweep.sweep.metrics import SWEEP_METRICS
from policysweep.sweep.plan import WHOLE, Shard, in_shard
from policysweep.sweep.runner import Simulators, Tally
from policysweep.v1 import stream_pb2

BANKS = "bank-store"
"""The folder of a run where a bank service that the driver starts keeps its banks."""

_GOLD = "rehearsal-gold.json"


class StreamDriver:
    """Runs one shard of a stream run against a store."""

    def __init__(
        self,
        spec: StreamSpec,
        played: Played,
        shard: Shard = WHOLE,
        on_event: Callable[[str], None] = print,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        """With `credentials` all services are called over TLS, and those started here serve it."""
        self._spec = spec
        self._played = played
        self._shard = shard
        self.on_event = on_event
        self._credentials = credentials
        self.progress = StreamProgress()

    async def run(self, ledger: StreamLedger, launcher: Launcher, logs: Path, folder: Path | None) -> bool:
        """Start what is missing, begin or resume the run, run the shard's open streams.

        `logs` is the folder of the services' logs, `folder` the local folder of the run, None when it lies
        elsewhere. Gives whether every task of the shard has a record.
        """
        spec, tls = self._spec, self._credentials.files if self._credentials else None
        async with Channels(self._credentials) as channels:
            endpoints = await services.start_services(
                spec, launcher, str(folder / BANKS) if folder else None, logs / _GOLD, tls
            )
            infos = await services.ask_infos(spec, endpoints, channels)
            manifest, notes = await ledger.begin(
                build_manifest(spec, self._played, infos), self._played.inputs
            )
            for note in notes:
                self.on_event(note)
            done = frozenset(await ledger.done_tasks())
            self._count(manifest, done)
            SWEEP_METRICS.watch(spec.name, "stream", self.progress)
            runner = self._runner(manifest, endpoints, ledger, channels)
            try:
                await runner.run(self._streams(manifest), done)
            except* PolicysweepError as group:
                # One is enough to tell: the others fell to the same cause, say a store that is full.
                raise first_error(group) from group
        return self.progress.stopped == 0

    def _streams(self, manifest: stream_pb2.StreamManifest) -> Iterator[PlannedStream]:
        for stream in planned_streams(manifest):
            if in_shard(stream.stream_id, self._shard):
                yield PlannedStream(stream, stream_tasks(manifest, self._played.inputs, stream))

    def _count(self, manifest: stream_pb2.StreamManifest, done: frozenset[str]) -> None:
        for planned in self._streams(manifest):
            tally = self.progress.agents.setdefault(row_name(planned.stream), Tally())
            tally.planned += len(planned.tasks)
            tally.done_before += sum(task.unit_id in done for task in planned.tasks)
            self.progress.streams += 1

    def _runner(
        self,
        manifest: stream_pb2.StreamManifest,
        endpoints: services.Endpoints,
        ledger: StreamLedger,
        channels: Channels,
    ) -> StreamRunner:
        spec, banks = self._spec, None
        if endpoints.bank is not None:
            banks = RunBanks(endpoints.bank, channels, manifest, ledger, spec.limits.curator_seconds)
        step = Step(
            manifest=manifest,
            inputs=self._played.inputs,
            agents=endpoints.agents,
            simulators=Simulators("RunTau2Episode", endpoints.simulators, channels),
            judge=JudgeClient(spec.judge.name, endpoints.judge, channels),
            banks=banks,
            limits=spec.limits,
        )
        return StreamRunner(spec, step, banks, ledger, self.progress, self.on_event)


def build_manifest(spec: StreamSpec, played: Played, infos: services.Infos) -> stream_pb2.StreamManifest:
    """The manifest of a run. InputError when two simulators differ, since a task may be played by any."""
    (first_target, simulator), *others = infos.simulators.items()
    for target, info in others:
        if changes := message_differences(simulator, info):
            raise InputError(f"simulators {first_target} and {target} differ: {'; '.join(changes)}")
    return stream_pb2.StreamManifest(
        format=FORMAT,
        run=spec.name,
        domains=played.domains,
        agents=[
            stream_pb2.StreamAgent(
                name=agent.name, infos=[infos.agents[agent.name, mode] for mode in spec.memory_modes()]
            )
            for agent in spec.agents
        ],
        methods=spec.method_messages(),
        seeds=sorted(spec.seeds),
        trials=spec.trials,
        controls=spec.controls_message(),
        simulator=simulator,
        judge=infos.judge,
        bank=infos.bank,
        limits=spec.limits.message(),
        # Not the name alone: a bank service may serve the runs of several stores.
        bank_namespace=f"{spec.name}-{uuid.uuid4().hex[:12]}",
        rehearsal=simulator.rehearsal
        or infos.judge.rehearsal
        or (infos.bank is not None and infos.bank.rehearsal)
        or any(info.rehearsal for info in infos.agents.values()),
        version=policysweep.__version__,
        created_at=now(),
    )
