"""The metrics of a driver, read from its own state whenever Prometheus asks: nothing is counted twice.

A driver goes through stages: `play`, `judge`, or `stream`. In each it has a `Progress` with a tally per
agent; the stages that it is done with stay visible as they ended. In the stage `judge` a unit is one
conversation for one judge, and the label `agent` is the judge's name. In the stage `stream` a unit is a task,
and the label is the stream's agent, method and regime.

Counters count what this process did. `policysweep_units` is the state of the whole shard, earlier runs
included: over all its states it adds up to the units planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from policysweep.sweep.backlog import Load
from policysweep.sweep.runner import Progress, Tally
from policysweep.telemetry import enum_label
from policysweep.v1 import episode_pb2 as ep

STATES = ("open", "running", "waiting", "done", "failed", "skipped")
"""Of a unit: not begun; in an attempt; in back-off; with a record; without one at the end of its attempts;
left for the next run because its agent was given up or its stream stopped."""

_AGENT = ("run", "stage", "agent")


class SweepMetrics(Collector):
    """The metrics of the stages that are watched."""

    def __init__(self) -> None:
        self._watched: dict[str, tuple[str, Progress]] = {}

    def watch(self, run: str, stage: str, progress: Progress) -> None:
        """Show `progress` of a run's stage from now on, in place of what was shown of this stage before."""
        self._watched[stage] = (run, progress)

    def describe(self) -> Iterable[Metric]:
        """The families without samples."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """The families with their samples of now."""
        families = _Families()
        for stage, (run, progress) in list(self._watched.items()):
            loads = progress.loads()
            for agent, tally in list(progress.agents.items()):
                load = loads.get(agent, Load())
                families.add((run, stage, agent), tally, load, progress.skipped(agent))
        return families.all()


def states(tally: Tally, load: Load, skipped: int) -> Mapping[str, int]:
    """Units of an agent by state; they add up to those planned."""
    found = {
        "running": load.running,
        "waiting": load.waiting,
        "done": tally.done_before + tally.recorded + tally.duplicates,
        "failed": tally.failed,
        "skipped": skipped,
    }
    # The others are read one after the other while the sweep goes on.
    return {"open": max(0, tally.planned - sum(found.values())), **found}


class _Families:
    """One scrape's families."""

    def __init__(self) -> None:
        self._units = GaugeMetricFamily(
            "policysweep_units",
            "Units of this shard, by state: open, running, waiting (in back-off), done (recorded), failed, "
            "skipped (left for the next run). They add up to the units planned.",
            labels=(*_AGENT, "state"),
        )
        self._attempts = _counter(
            "policysweep_attempts",
            "Attempts at units, by outcome: recorded, duplicate (somebody else was first), retried, failed "
            "(the last of its unit).",
            "outcome",
        )
        self._ends = _counter(
            "policysweep_unit_ends",
            "Units recorded, by fault (who failed) and end reason.",
            "fault",
            "reason",
        )
        self._errors = _counter(
            "policysweep_attempt_errors",
            "Attempts without a record, by party (who failed) and reason of the error.",
            "party",
            "reason",
        )
        self._tokens = _counter(
            "policysweep_unit_tokens", "Tokens that recorded units cost, cached included."
        )
        self._backoff = _counter(
            "policysweep_backoff_seconds",
            "Back-off given to units between their attempts; not charged to any.",
        )
        self._oldest = _gauge(
            "policysweep_oldest_attempt_seconds", "Age of the attempt that runs longest; 0 when none runs."
        )
        self._failing = _gauge(
            "policysweep_failing_seconds",
            "Time since which attempts have only failed; 0 after one that succeeded.",
        )

    def add(self, labels: Sequence[str], tally: Tally, load: Load, skipped: int) -> None:
        """The samples of one agent."""
        for state, units in states(tally, load, skipped).items():
            self._units.add_metric((*labels, state), units)
        for outcome, attempts in _outcomes(tally):
            self._attempts.add_metric((*labels, outcome), attempts)
        for (fault, end), units in tally.ends.copy().items():
            named = (enum_label(ep.FaultParty, fault), enum_label(ep.EndReason, end))
            self._ends.add_metric((*labels, *named), units)
        for (party, reason), attempts in tally.errors.copy().items():
            self._errors.add_metric((*labels, enum_label(ep.FaultParty, party), reason), attempts)
        self._tokens.add_metric(labels, tally.tokens)
        self._backoff.add_metric(labels, load.backoff)
        self._oldest.add_metric(labels, load.oldest)
        self._failing.add_metric(labels, load.failing)

    def all(self) -> Sequence[Metric]:
        """All families."""
        return (
            self._units, self._attempts, self._ends, self._errors, self._tokens, self._backoff, self._oldest,
            self._failing,
        )  # fmt: skip


def _outcomes(tally: Tally) -> Iterator[tuple[str, int]]:
    yield "recorded", tally.recorded
    yield "duplicate", tally.duplicates
    yield "retried", tally.retried
    yield "failed", tally.failed


def _counter(name: str, help_text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, help_text, labels=(*_AGENT, *labels))


def _gauge(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, labels=_AGENT)


SWEEP_METRICS = SweepMetrics()
"""The metrics of this process, should it be a driver."""
REGISTRY.register(SWEEP_METRICS)
