"""What is counted, under which names, and how much of it there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from policysweep import telemetry
from policysweep.errors import AgentUnavailable, ModelServerBusy, ModelServerRejected
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.observed import ObservedModel, is_later
from policysweep.sweep.backlog import Backlog
from policysweep.sweep.metrics import SweepMetrics
from policysweep.sweep.runner import Progress, Tally
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2
from scripts.generate_metrics_table import FILE, current

UNITS = 10_000
AGENTS = ("a", "b", "c", "d")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_the_table_is_that_of_the_code() -> None:
    text = FILE.read_text("utf-8")
    assert text == current(text), "run `make dashboards`"


@pytest.mark.parametrize(
    ("number", "label"), [(0, "none"), (ep.FAULT_PARTY_AGENT, "agent"), (ep.FAULT_PARTY_BUDGET, "budget")]
)
def test_values_of_enums_are_short_labels(number: int, label: str) -> None:
    assert telemetry.enum_label(ep.FaultParty, number) == label


# ------------------------------------------------------------------------------------------- driver


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def units(count: int) -> Iterator[run_pb2.Unit]:
    for number in range(count):
        yield run_pb2.Unit(unit_id=f"{number:08x}", agent=AGENTS[number % len(AGENTS)])


def watched(count: int, clock: Clock, outage: float = 300.0) -> tuple[CollectorRegistry, Progress, Backlog]:
    backlog = Backlog(units(count), max_attempts=2, outage_seconds=outage, clock=clock)
    planned = count // len(AGENTS)
    progress = Progress({name: Tally(planned=planned) for name in AGENTS}, backlog)
    metrics, registry = SweepMetrics(), CollectorRegistry()
    registry.register(metrics)
    metrics.watch("r", "play", progress)
    return registry, progress, backlog


def sample(registry: CollectorRegistry, name: str, agent: str = "a", **labels: str) -> float | None:
    return registry.get_sample_value(name, {"run": "r", "stage": "play", "agent": agent, **labels})


def by_state(registry: CollectorRegistry, agent: str = "a") -> dict[str, float]:
    states = ("open", "running", "waiting", "done", "failed", "skipped")
    return {state: sample(registry, "policysweep_units", agent, state=state) or 0.0 for state in states}


async def test_units_are_told_by_state_and_add_up_to_those_planned() -> None:
    clock = Clock()
    registry, progress, backlog = watched(20, clock)
    assert by_state(registry)["open"] == 5
    first = await backlog.take()
    assert first is not None
    clock.now = 7.0
    assert by_state(registry) == {
        "open": 4, "running": 1, "waiting": 0, "done": 0, "failed": 0, "skipped": 0,
    }  # fmt: skip
    assert sample(registry, "policysweep_oldest_attempt_seconds") == 7.0
    assert backlog.failed(first, ModelServerBusy("busy", retry_after=30.0))
    progress.agents["a"].retried += 1
    assert by_state(registry)["waiting"] == 1
    assert sample(registry, "policysweep_backoff_seconds_total") == 30.0
    assert sample(registry, "policysweep_attempts_total", outcome="retried") == 1
    clock.now = 9.0
    assert sample(registry, "policysweep_failing_seconds") == 2.0
    assert sum(by_state(registry).values()) == 5


async def test_an_agent_that_was_given_up_has_skipped_units() -> None:
    clock = Clock()
    registry, progress, backlog = watched(8, clock, outage=0.0)
    attempt = await backlog.take()
    assert attempt is not None
    assert not backlog.failed(attempt, AgentUnavailable("nobody there"))
    progress.agents["a"].failed += 1
    while (other := await backlog.take()) is not None:
        backlog.succeeded(other)
        progress.agents[other.unit.agent].recorded += 1
    assert by_state(registry)["skipped"] == 1
    assert by_state(registry, "b") == {
        "open": 0, "running": 0, "waiting": 0, "done": 2, "failed": 0, "skipped": 0,
    }  # fmt: skip
    assert sample(registry, "policysweep_failing_seconds", "b") == 0.0


async def test_ten_thousand_units_make_no_more_series_than_a_few() -> None:
    """A page of metrics is as long as there are agents, ends and reasons, whatever the number of units."""
    clock = Clock()
    registry, progress, backlog = watched(UNITS, clock)
    few = len(generate_latest(registry))
    ends = [(0, ep.END_REASON_RESOLVED), (ep.FAULT_PARTY_AGENT, ep.END_REASON_ERROR_LIMIT)]
    number = 0
    while (attempt := await backlog.take()) is not None:
        tally, number = progress.agents[attempt.unit.agent], number + 1
        if number % 50 == 0 and not attempt.failures:
            error = ModelServerRejected("no such model")
            backlog.failed(attempt, error)
            tally.errors[error.party, error.reason] += 1
            tally.failed += 1
            continue
        backlog.succeeded(attempt)
        tally.recorded += 1
        tally.ends[ends[number % 2]] += 1
    text = generate_latest(registry)
    assert sum(by_state(registry, agent)["done"] for agent in AGENTS) == UNITS - UNITS // 50
    assert len(text) < few + 200 * len(AGENTS) * 3
    assert len(text) < 20_000


# -------------------------------------------------------------------------------------------- model


class Model:
    """Answers with a usage, or raises."""

    def __init__(self, usage: ep.Usage, error: Exception | None = None) -> None:
        self._usage = usage
        self._error = error

    async def complete(self, request: ChatRequest) -> ChatReply:
        if self._error is not None:
            raise self._error
        return ChatReply("x", (), ep.FINISH_REASON_STOP, self._usage, rehearsal=True)


def conversation(answers: int) -> list[dict[str, str]]:
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}] * answers
    return [{"role": "system", "content": "s"}, *turns, {"role": "user", "content": "?"}]


@pytest.mark.parametrize(("answers", "later"), [(0, False), (1, False), (2, True), (9, True)])
def test_a_call_is_a_later_one_from_the_third_turn_on(answers: int, later: bool) -> None:
    assert is_later(conversation(answers)) is later


def tokens(name: str, kind: str, turn: str) -> float:
    return value("policysweep_model_tokens_total", role="agent", model=name, kind=kind, turn=turn)


async def test_tokens_are_counted_by_kind_and_turn() -> None:
    usage = ep.Usage(prompt_tokens=100, cached_prompt_tokens=60, completion_tokens=7)
    model = ObservedModel(Model(usage), "agent", "m-tokens")
    for answers in (0, 2, 3):
        await model.complete(ChatRequest(messages=conversation(answers)))
    assert [tokens("m-tokens", kind, "first") for kind in ("prompt", "cached", "completion")] == [100, 60, 7]
    assert [tokens("m-tokens", kind, "later") for kind in ("prompt", "cached", "completion")] == [
        200,
        120,
        14,
    ]


async def test_a_server_that_reports_no_cached_tokens_is_not_one_without_hits() -> None:
    model = ObservedModel(Model(ep.Usage(prompt_tokens=100)), "agent", "m-silent")
    await model.complete(ChatRequest(messages=conversation(4)))
    labels = {"role": "agent", "model": "m-silent", "kind": "cached", "turn": "later"}
    assert REGISTRY.get_sample_value("policysweep_model_tokens_total", labels) is None


async def test_errors_are_counted_by_reason_from_zero_on() -> None:
    model = ObservedModel(Model(ep.Usage(), ModelServerBusy("later")), "agent", "m-busy")

    def calls(outcome: str) -> float | None:
        labels = {"role": "agent", "model": "m-busy", "outcome": outcome}
        return REGISTRY.get_sample_value("policysweep_model_calls_total", labels)

    assert calls("MODEL_SERVER_BUSY") == 0
    with pytest.raises(ModelServerBusy):
        await model.complete(ChatRequest(messages=conversation(0)))
    assert calls("MODEL_SERVER_BUSY") == 1
    assert calls("ok") == 0


async def test_counting_a_call_makes_no_series_of_its_own() -> None:
    model = ObservedModel(Model(ep.Usage(prompt_tokens=1, cached_prompt_tokens=1)), "agent", "m-many")
    for answers in (0, 3):
        await model.complete(ChatRequest(messages=conversation(answers)))
    before = len(generate_latest().splitlines())
    await asyncio.gather(
        *(model.complete(ChatRequest(messages=conversation(n % 5), session_id=str(n))) for n in range(200))
    )
    assert len(generate_latest().splitlines()) == before
