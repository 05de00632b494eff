"""What judges found, beside the records of a run.

    judging.json                                   the rubric that counts, and the judges
    verdicts/<judge>/<panel>-<digest>/<unit>.binpb one VerdictRecord per judge, panel and unit
    inputs/goals/<sha-256 of the task id>.json     the customer's goals of a task, extracted once

The folder of a panel carries the panel's digest. A panel that was edited therefore has a folder of its own,
and exactly its verdicts are missing; those of the other panels stand.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.sweep.manifest import message_differences
from policysweep.sweep.records import record_name, unit_of
from policysweep.sweep.store import ResultStore
from policysweep.v1 import judge_pb2, run_pb2

JUDGING = "judging.json"
VERDICTS = "verdicts"
GOALS = "inputs/goals"

M = TypeVar("M", bound=Message)

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class PanelKey:
    """Where the verdicts of one judge on one version of a panel lie."""

    judge: str
    panel: str
    digest: str

    @property
    def folder(self) -> str:
        """The folder below `verdicts`. InputError for a name that cannot be a folder's."""
        for name in (self.judge, self.panel):
            if not _KEY.fullmatch(name):
                raise InputError(f"{name!r} cannot name a judge or panel: use letters, digits and . _ -")
        if not re.fullmatch(r"[0-9a-f]{64}", self.digest):
            raise InputError(f"panel {self.panel}: {self.digest!r} is not a SHA-256 digest")
        return f"{self.judge}/{self.panel}-{self.digest[:_DIGEST_LENGTH]}"


def panel_keys(judging: run_pb2.Judging) -> list[PanelKey]:
    """Every judge with every panel of the rubric, in order."""
    return [
        PanelKey(judge.name, panel.key, panel.digest)
        for judge in judging.judges
        for panel in judging.rubric.panels
    ]


class VerdictLedger:
    """Verdicts, goals and what a run is judged by. Raises StoreError when the store refuses."""

    def __init__(self, run: ResultStore) -> None:
        self._run = run

    async def read_judging(self) -> run_pb2.Judging | None:
        """What the run is judged by; None when it was never judged."""
        data = await self._run.read(JUDGING)
        return None if data is None else _decoded(data, run_pb2.Judging(), f"{self._run.url}/{JUDGING}")

    async def begin(
        self, rubric: judge_pb2.Rubric, judges: Mapping[str, judge_pb2.JudgeInfo]
    ) -> run_pb2.Judging:
        """Let `rubric` count from now on, with these judges beside those that the run has.

        Raises ManifestMismatch when a judge of the same name was another one.
        """
        standing = await self.read_judging() or run_pb2.Judging()
        known = {judge.name: judge.info for judge in standing.judges}
        for name, info in judges.items():
            if name in known and (changes := message_differences(known[name], info)):
                raise ManifestMismatch(
                    f"judge {name} of {self._run.url} was another one: {'; '.join(changes)}. "
                    "Give the new judge another name."
                )
        merged = {**known, **judges}
        judging = run_pb2.Judging(
            rubric=rubric,
            judges=[run_pb2.JudgeEntry(name=name, info=info) for name, info in merged.items()],
        )
        await self._run.replace(JUDGING, _encoded(judging))
        return judging

    async def judged_units(self, key: PanelKey) -> set[str]:
        """Ids of the units that have a verdict."""
        names = self._folder(key).list_names()
        return {unit async for name in names if (unit := unit_of(name)) is not None}

    async def write(self, record: run_pb2.VerdictRecord) -> bool:
        """Keep a verdict; False when there already is one, which stands."""
        key = PanelKey(record.judge, record.verdict.panel, record.verdict.panel_digest)
        return await self._folder(key).create(record_name(record.unit_id), record.SerializeToString())

    async def read(self, judging: run_pb2.Judging) -> AsyncGenerator[run_pb2.VerdictRecord]:
        """Every verdict that counts, by judge, panel and unit. StoreError for one that is damaged."""
        for key in panel_keys(judging):
            async with contextlib.aclosing(self.read_panel(key)) as records:
                async for record in records:
                    yield record

    async def read_panel(self, key: PanelKey) -> AsyncGenerator[run_pb2.VerdictRecord]:
        """The verdicts of one judge on one panel, in the order of unit ids."""
        folder = self._folder(key)
        names = [record_name(unit) for unit in sorted(await self.judged_units(key))]
        async with contextlib.aclosing(folder.read_many(names)) as blobs:
            async for name, data in blobs:
                try:
                    yield run_pb2.VerdictRecord.FromString(data)
                except DecodeError as error:
                    raise StoreError(
                        f"{folder.url}/{name}: damaged verdict: delete the file and judge the run again"
                    ) from error

    def _folder(self, key: PanelKey) -> ResultStore:
        return self._run.within(f"{VERDICTS}/{key.folder}")

    async def read_goals(self, task_id: str) -> run_pb2.TaskGoals | None:
        """The goals of a task; None when they were not extracted yet."""
        name = _goals_name(task_id)
        data = await self._run.read(name)
        return None if data is None else _decoded(data, run_pb2.TaskGoals(), f"{self._run.url}/{name}")

    async def write_goals(self, goals: run_pb2.TaskGoals) -> run_pb2.TaskGoals:
        """Keep the goals of a task unless it has some; gives those that count."""
        if await self._run.create(_goals_name(goals.task_id), _encoded(goals)):
            return goals
        standing = await self.read_goals(goals.task_id)
        assert standing is not None
        return standing


def _goals_name(task_id: str) -> str:
    # A task id is text from a data set and never a path.
    return f"{GOALS}/{hashlib.sha256(task_id.encode()).hexdigest()}.json"


def _encoded(message: Message) -> bytes:
    content = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _decoded(data: bytes, message: M, name: str) -> M:
    try:
        return json_format.ParseDict(orjson.loads(data), message)
    except (orjson.JSONDecodeError, json_format.ParseError) as error:
        raise StoreError(f"{name} is damaged: {error}; delete the file and judge the run again") from error
