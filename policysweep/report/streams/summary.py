"""The content of stream-report.json: every figure of a stream run with its interval and its coverage.

`summarise` returns plain dicts, lists, strings, numbers and None, equal for equal input whatever the order of
the rows. A figure that cannot be given is None, and its reason stands beside it. docs/methodology.md lists
the keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.json_format import MessageToDict

from policysweep.errors import InputError
from policysweep.report.figures import Json
from policysweep.report.per_agent import tokens_json
from policysweep.report.rows import Tokens, tokens_of
from policysweep.report.statistics import CONFIDENCE
from policysweep.report.streams.arm_section import Material, arm_key, arm_section
from policysweep.report.streams.arms import Arm, arm_of, titles
from policysweep.report.streams.comparisons import difference_json
from policysweep.report.streams.estimates import MIN_FAMILIES, REPLICATES
from policysweep.report.streams.grid import Grid, StreamPlan
from policysweep.report.streams.passes import MIN_COVERAGE
from policysweep.report.streams.rows import StreamRow
from policysweep.report.tally import UNSTATED, party_name
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import run_pb2, stream_pb2, tau2_pb2

SCHEMA_VERSION = 1

_CONVENTIONS = {
    "pass_k": "C(c, k) / C(n, k) of the n scored trials of a seed and task, mean over tasks, then seeds",
    "missing": "a seed and task with fewer than k scored trials has no pass^k and is left out; "
    "missing_as_failure counts missing trials as failures instead",
    "scored": "clean ends and the agent's own faults, with a reward; all other ends lower the coverage",
    "interval": "bootstrap over task families and seeds at once, percentiles expanded for few families",
    "gap_closed": "(arm - no memory) / (oracle - no memory) on the same seeds and tasks",
    "over_generalisation": "share of the trials of controls that the arm fails and no memory passes",
    "won_lost": "against no memory on the same task, seed and trial",
}


@dataclass(frozen=True)
class StreamResults:
    """What a report is computed from."""

    manifest: stream_pb2.StreamManifest
    plan: StreamPlan
    gaps: Sequence[tau2_pb2.Tau2Gap]
    rows: Sequence[StreamRow]
    failures: Sequence[stream_pb2.StreamFailure] = ()
    """Those whose task has no record."""
    initial_banks: Mapping[str, pb.Revision] = field(default_factory=dict)
    """By the name under which the run keeps them."""
    overreach: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Database hash, by domain and control, that overreaching leads to; empty where it is not known."""


def material_of(results: StreamResults, min_coverage: float = MIN_COVERAGE) -> Material:
    """The rows in their places. InputError for records that do not belong to the plan."""
    grid = Grid(results.plan)
    for row in results.rows:
        grid.add(row)
    return Material(grid, _by_stream(results), _failures(results), results.overreach, min_coverage)


def summarise(results: StreamResults, material: Material) -> Json:
    """The content of stream-report.json; `material` is that of the results."""
    arms = [arm_section(material, arm) for arm in results.plan.arms]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "streams",
        "rehearsal": results.manifest.rehearsal or any(row.rehearsal for row in results.rows),
        "run": _run(results.manifest),
        "methods": _methods(material.minimum),
        "units": _units(results, arms),
        "arms": arms,
        "regimes": list(_regimes(material.grid, material.minimum)),
        "gaps": [_gap(gap) for gap in results.gaps],
        "initial_banks": [_bank(name, first) for name, first in sorted(results.initial_banks.items())],
        "streams": [_stream(material, stream) for stream in results.plan.streams.values()],
    }


def _by_stream(results: StreamResults) -> dict[str, list[StreamRow]]:
    """The rows of each stream in their order. InputError for a task with two records."""
    found: dict[str, list[StreamRow]] = {stream_id: [] for stream_id in results.plan.streams}
    for row in sorted(results.rows, key=lambda row: (row.stream_id, row.position, row.unit_id)):
        held = found.setdefault(row.stream_id, [])
        if held and held[-1].position == row.position:
            raise InputError(
                f"Units {held[-1].unit_id} and {row.unit_id} have the same place in stream {row.stream_id}; "
                "run `policysweep verify` on the run."
            )
        held.append(row)
    return found


def _failures(results: StreamResults) -> dict[str, list[stream_pb2.StreamFailure]]:
    """Failures that stand, by stream."""
    recorded = {row.unit_id for row in results.rows}
    found: defaultdict[str, list[stream_pb2.StreamFailure]] = defaultdict(list)
    for failure in results.failures:
        if failure.task.unit_id not in recorded:
            found[failure.task.stream_id].append(failure)
    return found


def _methods(min_coverage: float) -> Json:
    return {
        "confidence": CONFIDENCE,
        "bootstrap_replicates": REPLICATES,
        "min_families": MIN_FAMILIES,
        "min_coverage": min_coverage,
        **_CONVENTIONS,
    }


def _units(results: StreamResults, arms: Sequence[Json]) -> Json:
    sections = [arm["coverage"] for arm in arms]
    total = {key: sum(each[key] for each in sections) for key in ("planned", "recorded", "scored", "failed")}
    return {
        **total,
        "pending": total["planned"] - total["recorded"] - total["failed"],
        "coverage": total["scored"] / total["planned"] if total["planned"] else None,
        "streams": len(results.plan.streams),
        "complete_streams": sum(arm["streams"]["complete"] for arm in arms),
    }


def _regimes(grid: Grid, minimum: float) -> Iterator[Json]:
    """For each arm that was played under several regimes: its differences to the default one, on sisters."""
    several: defaultdict[Arm, list[Arm]] = defaultdict(list)
    for arm in grid.plan.arms:
        several[arm._replace(regime=0)].append(arm)
    named = titles(several)
    for together, arms in several.items():
        first = min(arms, key=lambda arm: arm.regime != pb.FEEDBACK_REGIME_EXPLANATION)
        tasks = grid.plan.domains[first.domain]
        columns = tasks.group("sisters")
        for arm in arms:
            if arm != first and columns:
                sides = [grid.rewards[each][:, :, columns] for each in (arm, first)]
                found = difference_json(sides[0], sides[1], tasks.families(columns), minimum)
                baseline = arm_key(first)["regime"]
                yield {**arm_key(arm), "title": named[together], "baseline": baseline, **found}


def _run(manifest: stream_pb2.StreamManifest) -> Json:
    """The manifest without its date."""
    kept = stream_pb2.StreamManifest()
    kept.CopyFrom(manifest)
    kept.ClearField("created_at")
    kept.ClearField("rehearsal")
    section: Json = MessageToDict(
        kept, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    del section["rehearsal"]
    return section


def _gap(gap: tau2_pb2.Tau2Gap) -> Json:
    found: Json = MessageToDict(gap, preserving_proto_field_name=True)
    return found


def _bank(name: str, first: pb.Revision) -> Json:
    """A bank before any feedback, which the streams of a domain and method share."""
    return {
        "name": name,
        "entries": len(first.entries),
        "tokens": tokens_json(tokens_of([first.usage]) if first.usage.model_calls else Tokens()),
    }


def _stream(material: Material, stream: stream_pb2.Stream) -> Json:
    rows = material.rows[stream.stream_id]
    return {
        "stream_id": stream.stream_id,
        **arm_key(arm_of(stream)),
        "seed": stream.seed,
        "trial": stream.trial,
        "planned": len(material.grid.plan.domains[stream.domain].ids),
        "recorded": len(rows),
        "scored": sum(row.passed is not None for row in rows),
        "passed": sum(row.passed is True for row in rows),
        "failures": [_failure(failure) for failure in material.failures.get(stream.stream_id, ())],
    }


def _failure(failure: stream_pb2.StreamFailure) -> Json:
    """Where a stream stopped, and why: its last attempt."""
    last = failure.attempts[-1] if failure.attempts else run_pb2.FailedAttempt()
    return {
        "task": failure.task.task_id,
        "position": failure.task.position,
        "party": party_name(last.party),
        "reason": last.reason or UNSTATED,
        "message": last.message,
        "attempts": len(failure.attempts),
    }
