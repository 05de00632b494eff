"""A probe's result as text for a reader and as JSON for a machine; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.probe.capabilities import ALL
from policysweep.probe.finding import Capability, Finding, Verdict
from policysweep.probe.ramp import Ramp, Step
from policysweep.probe.run import ProbeResult
from policysweep.probe.usability import Usability

_WIDTH = max(len(capability.name) for capability in ALL)
_INDENT = " " * (_WIDTH + 11)


def finding_lines(capability: Capability, finding: Finding) -> Iterator[str]:
    """A finding, with the remedy and the meaning where it is not simply yes."""
    yield f"{finding.verdict:<7}  {capability.name:<{_WIDTH}}  {finding.detail}"
    if finding.verdict is Verdict.YES:
        return
    if finding.mend:
        yield f"{_INDENT}mend: {finding.mend}"
    needed = f"needed as {', '.join(capability.needed_by)}; " if capability.needed_by else ""
    yield f"{_INDENT}{needed}{capability.meaning}"


def result_lines(result: ProbeResult, wanted: Sequence[Usability]) -> Iterator[str]:
    """What comes after the findings: the ramp, and what the model can be used for."""
    if result.ramp is not None:
        yield ""
        yield from _ramp_lines(result.ramp)
    yield ""
    if result.rehearsal:
        yield "REHEARSAL: this is the rehearsal model; nothing here says how a real one behaves."
    for use in wanted:
        mode = f", with tool_mode {use.tool_mode}" if use.usable and use.tool_mode else ""
        verdict = f"usable{mode}" if use.usable else f"not usable: {', '.join(use.lacks)}"
        yield f"as {use.role:<9} {verdict}"
    yield f"Took {result.seconds:.0f} s."


def _ramp_lines(ramp: Ramp) -> Iterator[str]:
    yield "in flight  requests/s  tokens/s  p50 s  p95 s"
    for step in ramp.steps:
        yield (
            f"{step.concurrency:>9}  {step.requests_per_second:>10.2f}  {step.tokens_per_second:>8.1f}"
            f"  {step.p50_seconds:>5.2f}  {step.p95_seconds:>5.2f}"
            + (f"  {step.failed} failed" if step.failed else "")
        )
    yield f"The ramp ended because {ramp.ended}."
    if ramp.recommended is not None:
        yield f"concurrency: {ramp.recommended} gives nearly the best throughput of this one server."


def as_json(result: ProbeResult, wanted: Sequence[Usability]) -> dict[str, Any]:
    """Everything, as JSON values."""
    return {
        "url": result.url,
        "model": result.model,
        "rehearsal": result.rehearsal,
        "seconds": round(result.seconds, 1),
        "findings": {name: _finding(finding) for name, finding in result.findings.items()},
        "ramp": _ramp(result.ramp) if result.ramp else None,
        "usable": {
            use.role: {"usable": use.usable, "lacks": list(use.lacks), "tool_mode": use.tool_mode}
            for use in wanted
        },
    }


def _finding(finding: Finding) -> Mapping[str, Any]:
    found = {"verdict": str(finding.verdict), "detail": finding.detail}
    return {**found, **({"mend": finding.mend} if finding.mend else {}), "data": dict(finding.data)}


def _ramp(ramp: Ramp) -> Mapping[str, Any]:
    return {
        "steps": [_step(step) for step in ramp.steps],
        "ended": ramp.ended,
        "recommended_concurrency": ramp.recommended,
    }


def _step(step: Step) -> Mapping[str, Any]:
    """Numbers that could not be measured are null: JSON has no NaN."""
    values = {name: getattr(step, name) for name in Step.__dataclass_fields__}
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: float) -> float | None:
    if isinstance(value, int):
        return value
    return None if math.isnan(value) else round(value, 4)
