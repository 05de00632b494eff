"""Runs units: a fixed number of conversations in flight, one record each, failures beside them.

The runner owns the retries of a unit; nobody below it retries. It reads units lazily, holds only those in
flight or waiting, and can be stopped at any moment: what has no record is simply run the next time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import grpc
from google.protobuf.message import Message

from policysweep.clock import now
from policysweep.errors import PolicysweepError, ServiceContractError
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.sweep.backlog import Attempt, Backlog, Load
from policysweep.sweep.records import record_problems
from policysweep.v1 import (
    episode_pb2,
    run_pb2,
    scenario_pb2,
    simulator_pb2,
    world_pb2,
)

_Response: TypeAlias = simulator_pb2.RunEpisodeResponse | simulator_pb2.RunTau2EpisodeResponse
_SIMULATOR = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name
_RESPONSES: Mapping[str, type[_Response]] = {
    "RunEpisode": simulator_pb2.RunEpisodeResponse,
    "RunTau2Episode": simulator_pb2.RunTau2EpisodeResponse,
}

_START_SECONDS = 0.002
"""Pause between the starts of the first conversations. Started all at once they call their models all at
once, turn after turn: with 256 in flight at 500 ms, each call then waits 45 ms for others instead of 20."""


class RecordSink(Protocol):
    """Where results go."""

    async def write_record(self, record: run_pb2.UnitRecord) -> bool:
        """Keep a record; False when the unit already has one."""
        ...

    async def write_failure(self, failure: run_pb2.UnitFailure) -> None:
        """Keep the attempts of a unit that failed."""
        ...


@dataclass(slots=True)
class Tally:
    """What happened to the units of one agent in this invocation."""

    planned: int = 0
    """Units of this agent in this shard."""
    done_before: int = 0
    """Units that had a record when the invocation began."""
    recorded: int = 0
    duplicates: int = 0
    failed: int = 0
    retried: int = 0
    tokens: int = 0
    faults: int = 0
    """Recorded units whose conversation did not end cleanly."""
    ends: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Recorded units by who failed (FaultParty) and why the conversation ended (EndReason)."""
    errors: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Attempts that led to no record, by who failed (FaultParty) and reason of the error."""


@dataclass(slots=True)
class Progress:
    """The state of a run that a display reads."""

    agents: dict[str, Tally] = field(default_factory=dict)
    backlog: Backlog | None = None

    def loads(self) -> Mapping[str, Load]:
        """What each agent's units are doing now; none before they begin. Another thread may ask."""
        return self.backlog.load() if self.backlog is not None else {}

    def skipped(self, agent: str) -> int:
        """Units of an agent that this invocation leaves to the next one."""
        return self.backlog.skipped[agent] if self.backlog is not None else 0

    def longest(self) -> tuple[str, str, float] | None:
        """The unit in an attempt that began first, its agent, and the monotonic time at which it did."""
        running = self.backlog.running if self.backlog is not None else ()
        return (running[0].unit.unit_id, running[0].unit.agent, running[0].started) if running else None

    def total(self, name: str) -> int:
        """Sum of one tally over all agents."""
        return sum(getattr(tally, name) for tally in self.agents.values())


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How units are run. Nothing here changes a result."""

    concurrency: int
    max_attempts: int
    unit_seconds: float
    outage_seconds: float


class Runner:
    """Runs the units of one shard."""

    def __init__(
        self,
        *,
        scenarios: Mapping[str, scenario_pb2.Scenario],
        worlds: Mapping[str, world_pb2.OrderWorld],
        agent_targets: Mapping[str, str],
        banks: Mapping[str, run_pb2.AgentBank],
        simulator_targets: Sequence[str],
        limits: simulator_pb2.EpisodeLimits,
        settings: RunnerSettings,
        sink: RecordSink,
        channels: Channels,
        progress: Progress,
        on_event: Callable[[str], None],
    ) -> None:
        """`banks` are those of the agents that have one, by the agent's name."""
        self._scenarios = scenarios
        self._worlds = worlds
        self._agent_targets = agent_targets
        self._banks = banks
        self._simulators = Simulators("RunEpisode", simulator_targets, channels)
        self._limits = limits
        self._settings = settings
        self._sink = sink
        self._progress = progress
        self._on_event = on_event

    async def run(self, units: Iterator[run_pb2.Unit]) -> Backlog:
        """Run all units; returns once each is recorded, failed or skipped.

        Cancelling stops at once and loses only what is in flight. A StoreError ends the run: without a
        ledger no result can be kept.
        """
        backlog = Backlog(
            units,
            max_attempts=self._settings.max_attempts,
            outage_seconds=self._settings.outage_seconds,
        )
        self._progress.backlog = backlog
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.concurrency):
                group.create_task(self._work(backlog))
                await asyncio.sleep(_START_SECONDS)
        return backlog

    async def _work(self, backlog: Backlog) -> None:
        while (attempt := await backlog.take()) is not None:
            await self._attempt(backlog, attempt)

    async def _attempt(self, backlog: Backlog, attempt: Attempt) -> None:
        unit = attempt.unit
        tally = self._progress.agents[unit.agent]
        try:
            record = await self._play(attempt)
        except PolicysweepError as error:
            attempt.failures.append(failed_attempt(error))
            tally.errors[error.party, error.reason] += 1
            if backlog.failed(attempt, error):
                tally.retried += 1
                return
            tally.failed += 1
            self._on_event(f"unit {unit.unit_id} of {unit.agent} failed: {error}")
            await self._sink.write_failure(run_pb2.UnitFailure(unit=unit, attempts=attempt.failures))
            return
        await self._keep(record, tally)
        backlog.succeeded(attempt)

    async def _play(self, attempt: Attempt) -> run_pb2.UnitRecord:
        episode = await self._simulators.play(self._request(attempt.unit), self._settings.unit_seconds)
        record = run_pb2.UnitRecord(
            unit=attempt.unit, episode=episode, attempts=len(attempt.failures) + 1, recorded_at=now()
        )
        if problems := record_problems(record):
            raise ServiceContractError(f"the simulator's episode is refused: {'; '.join(problems)}")
        return record

    async def _keep(self, record: run_pb2.UnitRecord, tally: Tally) -> None:
        if not await self._sink.write_record(record):
            tally.duplicates += 1
            return
        tally.recorded += 1
        end = record.episode.end
        tally.ends[end.fault, end.reason] += 1
        tally.faults += end.fault != 0
        tally.tokens += sum(
            call.usage.prompt_tokens + call.usage.completion_tokens for call in record.episode.model_calls
        )

    def _request(self, unit: run_pb2.Unit) -> simulator_pb2.RunEpisodeRequest:
        request = simulator_pb2.RunEpisodeRequest(
            episode_id=unit.unit_id,
            scenario=self._scenarios[unit.scenario_id],
            world=self._worlds[unit.task_id],
            agent_target=self._agent_targets[unit.agent],
            agent_persona=unit.agent_persona,
            seed=unit.seed,
            limits=self._limits,
        )
        if (bank := self._banks.get(unit.agent)) is not None:
            request.bank_id, request.bank_revision = bank.bank_id, bank.revision
        # The design of the task stays with the driver and the judge.
        request.scenario.ClearField("task")
        return request


class Simulators:
    """Simulator targets; an episode is played by the one that plays the fewest for us."""

    def __init__(self, method: str, targets: Sequence[str], channels: Channels) -> None:
        """`method` is the one of SimulatorService that plays: RunEpisode or RunTau2Episode."""
        self._simulators = [_Simulator(method, target, channels) for target in targets]

    async def play(self, request: Message, seconds: float) -> episode_pb2.Episode:
        """The episode. Raises the error that the simulator raised."""
        return await min(self._simulators, key=lambda each: each.in_flight).play(request, seconds)


class _Simulator:
    """One simulator target with the number of episodes that it plays for us."""

    def __init__(self, method: str, target: str, channels: Channels) -> None:
        self._method = method
        self._target = target
        self._channels = channels
        self.in_flight = 0

    def _call(self, sent: bytes, seconds: float) -> grpc.aio.UnaryStreamCall[bytes, _Response]:
        # The channel is another one once the certificate was renewed.
        method: grpc.aio.UnaryStreamMultiCallable[bytes, _Response] = self._channels.get(
            self._target
        ).unary_stream(
            f"/{_SIMULATOR}/{self._method}", response_deserializer=_RESPONSES[self._method].FromString
        )
        return method(sent, timeout=seconds)

    async def play(self, request: Message, seconds: float) -> episode_pb2.Episode:
        # As bytes: a call holds what it sends to its end, and hundreds of messages would lie beside them.
        sent = request.SerializeToString()
        del request
        self.in_flight += 1
        try:
            async for response in self._call(sent, seconds):
                if response.HasField("episode"):
                    return response.episode
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.SERVICE, self._target) from error
        finally:
            self.in_flight -= 1
        raise ServiceContractError(f"simulator at {self._target} ended an episode without a result")


def failed_attempt(error: PolicysweepError) -> run_pb2.FailedAttempt:
    """A failed attempt as it is kept."""
    return run_pb2.FailedAttempt(party=error.party, reason=error.reason, message=str(error), failed_at=now())
