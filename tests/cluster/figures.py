"""The figures of a run, and the table that is printed at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.table import Table

from tests.cluster import installation as inst
from tests.cluster.box import REPLICA, Box, Drained
from tests.cluster.disturbing import STREAMS, SWEEP

_DONE = {
    "kill": "killed", "preempt": "told to stop", "restart": "restarted", "add": "added", "drain": "drained",
}  # fmt: skip
_STAGES = {"play": "conversations", "judge": "judgements", "stream": "tasks of streams"}


@dataclass(frozen=True)
class Figures:
    """What one run of the box came to."""

    seconds: float
    proofs: Sequence[tuple[str, str]]
    """What `policysweep verify` proved, in its words."""
    units: int
    faults: Mapping[tuple[str, str], int]
    """By what was done and to which kind of process."""
    restarts: Mapping[str, int]
    """By kind of process."""
    index_ends: Counter[str]
    """Ends of drivers before their work was done, by what the Job's manifest makes of them."""
    attempts: Mapping[str, Counter[str]]
    """By stage and outcome."""
    calls_by_code: Counter[str]
    model_calls: Counter[str]
    """By outcome."""
    calls_of_added: int
    drained: Drained | None
    alerts: Mapping[str, Sequence[str]]
    """Names, by what they were: pending, firing, firing now."""
    rules_failed: Sequence[str]


async def collect(box: Box, proofs: Sequence[tuple[str, str]], seconds: float) -> Figures:
    """Ask Prometheus and the box."""
    watch = box.watch
    attempts = {
        stage: await watch.counted(f'policysweep_attempts_total{{stage="{stage}"}}', "outcome")
        for stage in _STAGES
    }
    restarts: Counter[str] = Counter()
    for pod in box.pods.values():
        restarts[pod.spec.kind] += pod.restarts
    for job, kind in ((SWEEP, "driver"), (STREAMS, "stream driver")):
        restarts[kind] = box.jobs[job].ends.total()
    added = f'policysweep_grpc_server_calls_total{{pod="{REPLICA}",method=~".*/Respond"}}'
    return Figures(
        seconds=seconds,
        proofs=proofs,
        units=await watch.units_done(inst.SWEEP, "play"),
        faults=dict(box.faults),
        restarts=restarts,
        index_ends=sum((job.ends for job in box.jobs.values()), Counter()),
        attempts=attempts,
        calls_by_code=await watch.counted("policysweep_grpc_server_calls_total", "code"),
        model_calls=await watch.counted("policysweep_model_calls_total", "outcome"),
        calls_of_added=(await watch.counted(added, "code"))["OK"],
        drained=box.drained,
        alerts=await watch.alerts(),
        rules_failed=await watch.failed_rules(),
    )


def tables(figures: Figures, seed: int) -> Iterator[Table]:
    """The figures for a person."""
    yield _lines(f"Cluster in a box, seed {seed}: {figures.seconds:.0f} s, proved", figures.proofs)
    yield _faults(figures)
    yield _lines("What that cost", _costs(figures))
    yield _lines("Who came and went, and who noticed", _events(figures))


def _lines(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    found = Table(title=title, title_justify="left", show_header=False, box=SIMPLE, pad_edge=False)
    found.add_column(style="bold", no_wrap=True)
    found.add_column(overflow="fold")
    for row in rows:
        found.add_row(*row)
    return found


def _faults(figures: Figures) -> Table:
    """Faults by kind of process."""
    whats = list(dict.fromkeys(what for what, _ in figures.faults))
    kinds = sorted({kind for _, kind in figures.faults})
    found = Table(
        title=f"{sum(figures.faults.values())} faults", title_justify="left", box=SIMPLE, pad_edge=False
    )
    found.add_column("process", style="bold")
    for what in whats:
        found.add_column(_DONE[what], justify="right")
    found.add_column("came back", justify="right")
    for kind in kinds:
        done = [str(figures.faults.get((what, kind), "")) for what in whats]
        found.add_row(kind, *done, str(figures.restarts.get(kind, "")))
    return found


def _costs(figures: Figures) -> Iterator[tuple[str, str]]:
    for stage, name in _STAGES.items():
        outcomes = figures.attempts[stage]
        yield f"attempts at {name}", f"{outcomes.total()}: {listed(outcomes)}"
    yield "gRPC calls", f"{figures.calls_by_code.total()}: {listed(figures.calls_by_code)}"
    yield "model calls", f"{figures.model_calls.total()}: {listed(figures.model_calls)}"
    yield "drivers ended early", f"{listed(figures.index_ends)}, by the Jobs' podFailurePolicy"


def _events(figures: Figures) -> Iterator[tuple[str, str]]:
    yield "replica added", f"answered {figures.calls_of_added} calls"
    if drained := figures.drained:
        end = "cut some off" if drained.cut_off else "finished them"
        yield "replica drained", f"had {drained.calls} calls in flight, {end} in {drained.seconds:.1f} s"
    yield "alerts pending", ", ".join(figures.alerts["pending"]) or "none"
    yield "alerts fired", ", ".join(figures.alerts["firing"]) or "none"
    yield "alerts firing at the end", ", ".join(figures.alerts["firing now"]) or "none"


def listed(counts: Mapping[str, int]) -> str:
    """Counts in one line, the largest first."""
    some = sorted((item for item in counts.items() if item[1]), key=lambda item: -item[1])
    return ", ".join(f"{name} {count}" for name, count in some) or "none"
