"""`python -m bench [CASE ...]`: run the benchmarks, print the figures, write them to bench/results/."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import judging, policybank, prompts, report, streams, tau2, vllm
from bench.sweep import Case, Figures, measure

RESULTS = Path(__file__).with_name("results") / "sweep.json"

CASES = {
    "zero": Case(concurrency=64, scenarios=400, latency=0.0),
    "64": Case(concurrency=64, scenarios=40, latency=0.5),
    "256": Case(concurrency=256, scenarios=130, latency=0.5),
    "512": Case(concurrency=512, scenarios=260, latency=0.5),
}
"""Under latency each case plays about two units per conversation in flight."""

JUDGING = "judging"
"""The case of `bench/judging.py`."""

TAU2 = "tau2"
"""The case of `bench/tau2.py`."""

POLICYBANK = "policybank"
"""The case of `bench/policybank.py`."""

PROMPTS = "prompts"
"""The case of `bench/prompts.py`."""

STREAMS = "streams"
"""The case of `bench/streams.py`."""

REPORT = "report"
"""The case of `bench/report.py`."""

VLLM = "vllm"
"""The case of `bench/vllm.py`."""

_REFERENCE = {"cpu_ms_per_call": 8.5, "scenarios_per_second": 10.0}
"""The public DRIP-R code on two cores against one scripted model server, as published in its measurement."""


def main(names: list[str]) -> None:
    """Run the named cases, or all."""
    known = [*CASES, JUDGING, TAU2, POLICYBANK, PROMPTS, STREAMS, REPORT, VLLM]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no case {', '.join(unknown)}: choose from {', '.join(known)}")
    console = Console()
    if chosen := [name for name in names or CASES if name in CASES]:
        _sweep(chosen, console, keep=not names)
    if not names or JUDGING in names:
        _judging(console)
    if not names or TAU2 in names:
        _tau2(console)
    if not names or POLICYBANK in names:
        _policybank(console)
    if not names or PROMPTS in names:
        _prompts(console)
    if not names or STREAMS in names:
        _streams(console)
    if not names or REPORT in names:
        _report(console)
    if not names or VLLM in names:
        _vllm(console)


def _vllm(console: Console) -> None:
    url = os.environ.get(vllm.URL)
    if not url:
        console.print(f"case {VLLM} left out: {vllm.URL} names no vLLM server", soft_wrap=True)
        return
    console.print(f"running case {VLLM} ...", style="dim")
    vllm.save({**_where(), **vllm.run(console, url)})
    console.print(f"Written to {vllm.RESULTS}", soft_wrap=True)


def _report(console: Console) -> None:
    console.print(f"running case {REPORT} ...", style="dim")
    report.save({**_where(), **report.run(console)})
    console.print(f"Written to {report.RESULTS}", soft_wrap=True)


def _streams(console: Console) -> None:
    console.print(f"running case {STREAMS} ...", style="dim")
    streams.save({**_where(), **streams.run(console)})
    console.print(f"Written to {streams.RESULTS}", soft_wrap=True)


def _prompts(console: Console) -> None:
    console.print(f"running case {PROMPTS} ...", style="dim")
    prompts.save({**_where(), **prompts.run(console)})
    console.print(f"Written to {prompts.RESULTS}", soft_wrap=True)


def _policybank(console: Console) -> None:
    console.print(f"running case {POLICYBANK} ...", style="dim")
    policybank.save({**_where(), **policybank.run(console)})
    console.print(f"Written to {policybank.RESULTS}", soft_wrap=True)


def _tau2(console: Console) -> None:
    console.print(f"running case {TAU2} ...", style="dim")
    tau2.save({**_where(), **tau2.run(console)})
    console.print(f"Written to {tau2.RESULTS}", soft_wrap=True)


def _judging(console: Console) -> None:
    console.print(f"running case {JUDGING} ...", style="dim")
    judging.save({**_where(), **judging.run(console)})
    console.print(f"Written to {judging.RESULTS}", soft_wrap=True)


def _sweep(chosen: list[str], console: Console, *, keep: bool) -> None:
    figures = {}
    for name in chosen:
        console.print(f"running case {name} ...", style="dim")
        figures[name] = measure(CASES[name])
    console.print(_table(figures))
    console.print(
        f"Public code: {_REFERENCE['cpu_ms_per_call']} ms CPU a call, "
        f"{_REFERENCE['scenarios_per_second']} scenarios/s (measured elsewhere, on two cores as well)."
    )
    if keep:
        RESULTS.write_text(json.dumps(_document(figures), indent=2) + "\n", encoding="utf-8")
        console.print(f"Written to {RESULTS}", soft_wrap=True)


def _table(figures: dict[str, Figures]) -> Table:
    table = Table(title="Sweep with four rehearsal agents, all processes on this machine")
    for column in (
        "in flight",
        "latency s",
        "units",
        "calls",
        "CPU ms/call",
        "rehearsal ms/call",
        "scenarios/s",
        "share of ideal",
        "PSS MB",
        "RSS MB",
        "start CPU s",
    ):
        table.add_column(column, justify="right")
    for each in figures.values():
        row = _row(each)
        table.add_row(*(str(row[key]) for key in row if key != "cpu_seconds"))
    return table


def _row(each: Figures) -> dict[str, Any]:
    return {
        "in_flight": each.case.concurrency,
        "latency_seconds": each.case.latency,
        "units": each.units,
        "model_calls": each.calls,
        "cpu_ms_per_call": round(each.cpu_ms_per_call, 2),
        "rehearsal_ms_per_call": round(each.rehearsal_ms_per_call, 2),
        "scenarios_per_second": round(each.units / each.wall_seconds, 1),
        "share_of_ideal": round(each.share_of_ideal, 3) if each.case.latency else "-",
        "pss_mb": round(each.memory["pss"]),
        "rss_mb": round(each.memory["rss"]),
        "slowest_start_cpu_seconds": round(max(each.start_cpu.values()), 2),
        "cpu_seconds": {name: round(seconds, 2) for name, seconds in each.cpu.items()},
    }


def _document(figures: dict[str, Figures]) -> dict[str, Any]:
    return {
        **_where(),
        "public_code": _REFERENCE,
        "cases": {name: _row(each) for name, each in figures.items()},
    }


def _where() -> dict[str, Any]:
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.machine(), "python": platform.python_version()},
    }


if __name__ == "__main__":
    main(sys.argv[1:])
