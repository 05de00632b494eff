"""A run as flat Parquet tables: units, messages, tool_calls, model_calls and scores.

Rows of one unit share its `unit_id`, and `message_index` is the place in `Episode.messages`. Enums are their
wire names without prefix, and null where the contract says unspecified. What was not reported is null.

Rows go to disk in groups, so that memory does not grow with the run. pyarrow is an optional package
(`pip install policysweep[parquet]`), imported with this module and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from policysweep.errors import InputError
from policysweep.interop.contents import RunContents
from policysweep.interop.names import name_or_none
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

try:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no type information
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no type information
except ImportError as error:
    raise InputError(
        "--format parquet needs pyarrow, which is not installed: pip install 'policysweep[parquet]'"
    ) from error

GROUP_ROWS = 10_000
GROUP_BYTES = 32 * 2**20
"""A group of rows goes to disk once it has so many rows, or comes from units and verdicts of this size."""

Row = dict[str, Any]

_TEXT, _INT, _REAL, _BOOL = pa.string(), pa.int32(), pa.float64(), pa.bool_()
_ERRORS = tuple(field.name for field in ep.ErrorCounts.DESCRIPTOR.fields)

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "units": {
        "unit_id": _TEXT,
        "scenario_id": _TEXT,
        "task_id": _TEXT,
        "customer_persona": _TEXT,
        "complexity": _TEXT,
        "ambiguity": _TEXT,
        "agent": _TEXT,
        "model": _TEXT,
        "agent_persona": _TEXT,
        "trial": _INT,
        "seed": _INT,
        "outcome": _TEXT,
        "resolution": _TEXT,
        "executed": _TEXT,
        "mismatch": _BOOL,
        "end_reason": _TEXT,
        "fault": _TEXT,
        "end_detail": _TEXT,
        "turns": _INT,
        "messages": _INT,
        **dict.fromkeys(_ERRORS, _INT),
        "attempts": _INT,
        "duration_seconds": _REAL,
        "recorded_at": pa.timestamp("us", "UTC"),
        "rehearsal": _BOOL,
    },
    "messages": {
        "unit_id": _TEXT,
        "message_index": _INT,
        "role": _TEXT,
        "content": _TEXT,
        "tool_call_id": _TEXT,
        "tool_name": _TEXT,
        "tool_status": _TEXT,
    },
    "tool_calls": {
        "unit_id": _TEXT,
        "caller": _TEXT,
        "message_index": _INT,
        "tool_call_id": _TEXT,
        "tool_name": _TEXT,
        "arguments_json": _TEXT,
        "status": _TEXT,
        "result_json": _TEXT,
    },
    "model_calls": {
        "unit_id": _TEXT,
        "call_index": _INT,
        "role": _TEXT,
        "after_message": _INT,
        "prompt_tokens": _INT,
        "cached_prompt_tokens": _INT,
        "completion_tokens": _INT,
        "latency_seconds": _REAL,
        "model_calls": _INT,
        "finish_reason": _TEXT,
    },
    "scores": {
        "unit_id": _TEXT,
        "judge": _TEXT,
        "rubric": _TEXT,
        "rubric_version": _INT,
        "panel": _TEXT,
        "metric": _TEXT,
        "message_index": _INT,
        "subject": _TEXT,
        "value": _REAL,
        "outcome": _TEXT,
        "absent_reason": _TEXT,
        "absent_detail": _TEXT,
        "justification": _TEXT,
        "written": _INT,
        "samples": _INT,
        "scale_mass": _REAL,
        "spread": _REAL,
        "recorded_at": pa.timestamp("us", "UTC"),
        "rehearsal": _BOOL,
    },
}
"""Columns by table. In `scores` the metric "outcome" is the outcome that a judge saw; it has no value."""


class Tables:
    """Writes a run as `<table>.parquet`."""

    def __init__(self, folder: Path, contents: RunContents, stack: ExitStack) -> None:
        self._contents = contents
        self._models = {agent.name: agent.info.model for agent in contents.manifest.agents}
        facts = {"run": contents.manifest.run, "rehearsal": str(contents.manifest.rehearsal).lower()}
        self._tables = {
            name: stack.enter_context(_Table(folder / f"{name}.parquet", columns, facts))
            for name, columns in SCHEMAS.items()
        }

    def add(self, record: run_pb2.UnitRecord, verdicts: Sequence[run_pb2.VerdictRecord]) -> None:
        """Write a unit with the verdicts on it."""
        rows: Mapping[str, Iterable[Row]] = {
            "units": [self._unit(record)],
            "messages": _messages(record.episode),
            "tool_calls": _tool_calls(record.episode),
            "model_calls": _model_calls(record.episode),
            "scores": (row for verdict in verdicts for row in _scores(verdict)),
        }
        size = record.ByteSize() + sum(verdict.ByteSize() for verdict in verdicts)
        for name, found in rows.items():
            self._tables[name].add(record.unit.unit_id, found, size)

    def _unit(self, record: run_pb2.UnitRecord) -> Row:
        unit, episode = record.unit, record.episode
        scenario = self._contents.scenarios[unit.scenario_id]
        held = episode.reconciliation if episode.HasField("reconciliation") else None
        return {
            "scenario_id": unit.scenario_id,
            "task_id": unit.task_id,
            "customer_persona": scenario.persona.persona_id,
            "complexity": scenario.task.complexity_level,
            "ambiguity": scenario.task.primary_ambiguity_type,
            "agent": unit.agent,
            "model": self._models.get(unit.agent),
            "agent_persona": name_or_none(ep.AgentPersona.DESCRIPTOR, unit.agent_persona),
            "trial": unit.trial,
            "seed": unit.seed,
            "outcome": name_or_none(ep.Outcome.DESCRIPTOR, episode.outcome),
            "resolution": episode.resolution.description if episode.HasField("resolution") else None,
            "executed": name_or_none(ep.Outcome.DESCRIPTOR, held.executed) if held else None,
            "mismatch": held.mismatch if held else None,
            "end_reason": name_or_none(ep.EndReason.DESCRIPTOR, episode.end.reason),
            "fault": name_or_none(ep.FaultParty.DESCRIPTOR, episode.end.fault),
            "end_detail": episode.end.detail,
            "turns": episode.turns,
            "messages": len(episode.messages),
            **{name: getattr(episode.errors, name) for name in _ERRORS},
            "attempts": record.attempts,
            "duration_seconds": episode.duration_seconds,
            "recorded_at": record.recorded_at.ToMicroseconds() if record.HasField("recorded_at") else None,
            "rehearsal": episode.rehearsal,
        }


def _messages(episode: ep.Episode) -> Iterator[Row]:
    for position, message in enumerate(episode.messages):
        yield {
            "message_index": position,
            "role": name_or_none(ep.Role.DESCRIPTOR, message.role),
            "content": message.content,
            "tool_call_id": message.tool_call_id or None,
            "tool_name": message.tool_name or None,
            "tool_status": name_or_none(ep.ToolStatus.DESCRIPTOR, message.tool_status),
        }


def _tool_calls(episode: ep.Episode) -> Iterator[Row]:
    """The agent's calls, each with its result, then the customer's."""
    results = {message.tool_call_id: message for message in episode.messages if message.role == ep.ROLE_TOOL}
    for position, message in enumerate(episode.messages):
        for call in message.tool_calls:
            result = results.get(call.id)
            yield _tool_call("AGENT", position, call) | {
                "status": name_or_none(ep.ToolStatus.DESCRIPTOR, result.tool_status) if result else None,
                "result_json": result.content if result else None,
            }
    for event in episode.customer_tool_events:
        yield _tool_call("CUSTOMER", event.after_message, event.call) | {
            "status": name_or_none(ep.ToolStatus.DESCRIPTOR, event.status),
            "result_json": event.result_json or None,
        }


def _tool_call(caller: str, position: int, call: ep.ToolCall) -> dict[str, Any]:
    return {
        "caller": caller,
        "message_index": position,
        "tool_call_id": call.id,
        "tool_name": call.name,
        "arguments_json": call.arguments_json,
    }


def _model_calls(episode: ep.Episode) -> Iterator[Row]:
    for position, call in enumerate(episode.model_calls):
        usage = call.usage
        yield {
            "call_index": position,
            "role": name_or_none(ep.Role.DESCRIPTOR, call.role),
            "after_message": call.after_message,
            "prompt_tokens": _optional(usage, "prompt_tokens"),
            "cached_prompt_tokens": _optional(usage, "cached_prompt_tokens"),
            "completion_tokens": _optional(usage, "completion_tokens"),
            "latency_seconds": usage.latency_seconds,
            "model_calls": usage.model_calls,
            "finish_reason": name_or_none(ep.FinishReason.DESCRIPTOR, call.finish_reason),
        }


def _scores(record: run_pb2.VerdictRecord) -> Iterator[Row]:
    verdict = record.verdict
    shared = {
        "judge": record.judge,
        "rubric": record.rubric.name,
        "rubric_version": record.rubric.version,
        "panel": verdict.panel,
        "recorded_at": record.recorded_at.ToMicroseconds() if record.HasField("recorded_at") else None,
        "rehearsal": verdict.rehearsal,
    }
    for score in verdict.scores:
        yield shared | {
            "metric": score.metric,
            "message_index": _optional(score, "message_index"),
            "subject": name_or_none(ep.Role.DESCRIPTOR, score.subject),
            "value": _optional(score, "value"),
            "absent_reason": name_or_none(judge_pb2.AbsentReason.DESCRIPTOR, score.absent_reason),
            "absent_detail": score.absent_detail or None,
            "justification": score.justification,
            "written": _optional(score, "written"),
            "samples": score.samples,
            "scale_mass": _optional(score, "scale_mass"),
            "spread": _optional(score, "spread"),
        }
    if verdict.HasField("outcome"):
        yield shared | {
            "metric": "outcome",
            "outcome": name_or_none(ep.Outcome.DESCRIPTOR, verdict.outcome.outcome),
            "absent_reason": name_or_none(judge_pb2.AbsentReason.DESCRIPTOR, verdict.outcome.absent_reason),
            "absent_detail": verdict.outcome.absent_detail or None,
            "justification": verdict.outcome.justification,
        }


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


class _Table:
    """One Parquet file, written in groups of rows. A context manager."""

    def __init__(self, path: Path, columns: Mapping[str, Any], facts: Mapping[str, str]) -> None:
        self._schema = pa.schema(list(columns.items()), metadata=dict(facts))
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._size = 0

    def __enter__(self) -> _Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._file.close()

    def add(self, unit_id: str, rows: Iterable[Row], size: int) -> None:
        """Add the rows of a unit, which may leave out columns; `size` is that of what they were made from."""
        for row in rows:
            row["unit_id"] = unit_id
            self._rows.append(row)
        self._size += size
        if len(self._rows) >= GROUP_ROWS or self._size >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = {name: [row.get(name) for row in self._rows] for name in self._schema.names}
            self._file.write_table(pa.table(columns, schema=self._schema))
        self._rows.clear()
        self._size = 0
