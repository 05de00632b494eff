"""The proof that a run is judged: one sound verdict by every judge on every panel that counts.

It covers the conversations that judges score; two verdicts of one question cannot exist, because judge, panel
and unit are the name of the verdict. Missing verdicts are no fault of the run: they are counted, and judging
it again asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass

from policysweep.sweep.verdicts import DAMAGED, VerdictLedger, panel_keys
from policysweep.v1 import run_pb2


@dataclass(frozen=True, slots=True)
class VerdictsResult:
    """What the proof found."""

    expected: int
    """Verdicts that a complete run has."""
    found: int
    """Those of them that are there and sound."""
    missing: Mapping[tuple[str, str], tuple[str, ...]]
    """Ids of the units without a verdict, by judge and panel; only where there are such."""
    problems: tuple[str, ...]
    """Everything that is wrong with a verdict, one sentence each."""


async def verify_verdicts(
    verdicts: VerdictLedger, judging: run_pb2.Judging, recorded: Mapping[str, int]
) -> VerdictsResult:
    """Hold the verdicts against the conversations that judges score.

    `recorded` is when each was recorded, in nanoseconds of the epoch, by unit id.
    """
    keys = panel_keys(judging)
    found, missing, problems = 0, {}, []
    for key in keys:
        unseen = dict.fromkeys(recorded)
        async with aclosing(verdicts.scan_panel(key)) as records:
            async for name, record in records:
                if problem := _problem(record, recorded):
                    problems.append(f"{name}: {problem}")
                else:
                    found += 1
                unseen.pop(name.rpartition("/")[2].removesuffix(".binpb"), None)
        if unseen:
            missing[key.judge, key.panel] = tuple(unseen)
    return VerdictsResult(len(keys) * len(recorded), found, missing, tuple(problems))


def _problem(record: run_pb2.VerdictRecord | None, recorded: Mapping[str, int]) -> str:
    if record is None:
        return DAMAGED
    if record.unit_id not in recorded:
        return "there is no conversation for it to judge; delete the file"
    if record.recorded_at.ToNanoseconds() < recorded[record.unit_id]:
        return "older than the conversation that it judges; delete the file and judge the run again"
    return ""
