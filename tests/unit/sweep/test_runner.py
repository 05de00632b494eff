"""The runner without a network: one record each, failures beside them, flat memory at any size."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from policysweep.errors import ModelServerGarbled, PolicysweepError, StoreError
from policysweep.rpc.client import Channels
from policysweep.sweep import runner as module
from policysweep.sweep.runner import Progress, Runner, RunnerSettings, Tally
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, scenario_pb2, simulator_pb2, world_pb2

SCENARIO = scenario_pb2.Scenario(scenario_id="s", task_id="t", task=scenario_pb2.Task(detail="secret"))


class Sink:
    """Counts what it is given."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.records: Counter[str] = Counter()
        self.failures: dict[str, list[str]] = {}
        self._taken = taken

    async def write_record(self, record: run_pb2.UnitRecord) -> bool:
        self.records[record.unit.unit_id] += 1
        return record.unit.unit_id not in self._taken

    async def write_failure(self, failure: run_pb2.UnitFailure) -> None:
        self.failures[failure.unit.unit_id] = [attempt.reason for attempt in failure.attempts]


def units(number: int) -> Iterator[run_pb2.Unit]:
    for each in range(number):
        yield run_pb2.Unit(
            unit_id=f"{each:032x}",
            scenario_id="s",
            task_id="t",
            agent="a",
            agent_persona=ep.AGENT_PERSONA_FAIR,
            seed=5,
        )


def episode(request: simulator_pb2.RunEpisodeRequest) -> ep.Episode:
    return ep.Episode(
        episode_id=request.episode_id,
        scenario_id=request.scenario.scenario_id,
        task_id=request.scenario.task_id,
        agent_persona=request.agent_persona,
        seed=request.seed,
        end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
    )


Play = Callable[[simulator_pb2.RunEpisodeRequest], ep.Episode]


@pytest.fixture
def make_runner(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Runner, Progress]]:
    def make(
        sink: Sink,
        play: Play = episode,
        concurrency: int = 8,
        banks: dict[str, run_pb2.AgentBank] | None = None,
    ) -> tuple[Runner, Progress]:
        class Simulator:
            in_flight = 0

            def __init__(self, method: str, target: str, channels: Channels) -> None:
                pass

            async def play(self, request: simulator_pb2.RunEpisodeRequest, seconds: float) -> ep.Episode:
                return play(request)

        monkeypatch.setattr(module, "_Simulator", Simulator)
        progress = Progress(agents={"a": Tally()})
        return (
            Runner(
                scenarios={"s": SCENARIO},
                worlds={"t": world_pb2.OrderWorld()},
                agent_targets={"a": "agent:1"},
                banks=banks or {},
                simulator_targets=["simulator:1"],
                limits=simulator_pb2.EpisodeLimits(max_turns=1),
                settings=RunnerSettings(concurrency, 3, 10.0, 300.0),
                sink=sink,
                channels=Channels(),
                progress=progress,
                on_event=lambda text: None,
            ),
            progress,
        )

    return make


async def test_every_unit_gets_one_record(make_runner: Callable[..., tuple[Runner, Progress]]) -> None:
    sink = Sink()
    runner, progress = make_runner(sink)
    await runner.run(units(50))
    assert len(sink.records) == 50
    assert set(sink.records.values()) == {1}
    assert progress.agents["a"].recorded == 50


async def test_the_simulator_never_sees_the_design(
    make_runner: Callable[..., tuple[Runner, Progress]],
) -> None:
    seen = []

    def play(request: simulator_pb2.RunEpisodeRequest) -> ep.Episode:
        seen.append(request.scenario.HasField("task"))
        return episode(request)

    runner, _ = make_runner(Sink(), play)
    await runner.run(units(3))
    assert seen == [False] * 3
    assert SCENARIO.HasField("task")


@pytest.mark.parametrize(("banks", "expected"), [({}, ("", 0)), ({"a": ("b", 3)}, ("b", 3))])
async def test_an_agent_reads_the_bank_of_the_manifest(
    make_runner: Callable[..., tuple[Runner, Progress]],
    banks: dict[str, tuple[str, int]],
    expected: tuple[str, int],
) -> None:
    seen = []

    def play(request: simulator_pb2.RunEpisodeRequest) -> ep.Episode:
        seen.append((request.bank_id, request.bank_revision))
        return episode(request)

    frozen = {name: run_pb2.AgentBank(bank_id=bank, revision=at) for name, (bank, at) in banks.items()}
    runner, _ = make_runner(Sink(), play, banks=frozen)
    await runner.run(units(2))
    assert seen == [expected] * 2


async def test_a_late_duplicate_is_discarded_and_counted(
    make_runner: Callable[..., tuple[Runner, Progress]],
) -> None:
    sink = Sink(taken=frozenset({f"{3:032x}"}))
    runner, progress = make_runner(sink)
    await runner.run(units(5))
    assert progress.agents["a"].recorded == 4
    assert progress.agents["a"].duplicates == 1


async def test_attempts_equal_the_configured_number(
    make_runner: Callable[..., tuple[Runner, Progress]],
) -> None:
    tried: Counter[str] = Counter()

    def play(request: simulator_pb2.RunEpisodeRequest) -> ep.Episode:
        tried[request.episode_id] += 1
        if request.episode_id == f"{0:032x}":
            raise ModelServerGarbled("half an answer")
        return episode(request)

    sink = Sink()
    runner, progress = make_runner(sink, play)
    await runner.run(units(3))
    assert tried == {f"{0:032x}": 3, f"{1:032x}": 1, f"{2:032x}": 1}
    assert sink.failures == {f"{0:032x}": ["MODEL_SERVER_GARBLED"] * 3}
    assert (progress.agents["a"].failed, progress.agents["a"].retried) == (1, 2)


@pytest.mark.parametrize("field", ["episode_id", "scenario_id", "task_id"])
async def test_an_episode_of_something_else_is_refused(
    make_runner: Callable[..., tuple[Runner, Progress]], field: str
) -> None:
    def play(request: simulator_pb2.RunEpisodeRequest) -> ep.Episode:
        wrong = episode(request)
        setattr(wrong, field, "another")
        return wrong

    sink = Sink()
    runner, _ = make_runner(sink, play)
    await runner.run(units(1))
    assert not sink.records
    assert sink.failures == {f"{0:032x}": ["SERVICE_CONTRACT"]}


async def test_a_store_that_refuses_ends_the_run(
    make_runner: Callable[..., tuple[Runner, Progress]],
) -> None:
    class Full(Sink):
        async def write_record(self, record: run_pb2.UnitRecord) -> bool:
            raise StoreError("no space left")

    runner, _ = make_runner(Full())
    with pytest.raises(ExceptionGroup) as raised:
        await runner.run(units(20))
    assert all(isinstance(error, PolicysweepError) for error in raised.value.exceptions)


async def test_32768_units_end_with_flat_memory(
    make_runner: Callable[..., tuple[Runner, Progress]],
) -> None:
    class Forgetful(Sink):
        async def write_record(self, record: run_pb2.UnitRecord) -> bool:
            return True

    runner, progress = make_runner(Forgetful(), concurrency=64)
    tracemalloc.start()
    try:
        await runner.run(units(32_768))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert progress.agents["a"].recorded == 32_768
    assert peak < 5_000_000
