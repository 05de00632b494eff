"""What judges found, beside the records of a run.

    judging/rubric.json                            the rubric that counts; replaced when another one shall
    judging/judges/<judge>.json                    who judges: one JudgeEntry, which stands
    verdicts/<judge>/<panel>-<digest>/<unit>.binpb one VerdictRecord per judge, panel and unit, which stands
    inputs/goals/<sha-256 of the task id>.json     the customer's goals of a task, extracted once

The folder of a panel carries the panel's digest. A panel that was edited therefore has a folder of its own,
and exactly its verdicts are missing; those of the other panels stand. Any number of drivers may judge a run
at the same time, each with judges of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.sweep.manifest import message_differences
from policysweep.sweep.records import record_name, unit_of
from policysweep.sweep.store import ResultStore
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

RUBRIC = "judging/rubric.json"
JUDGES = "judging/judges"
VERDICTS = "verdicts"
GOALS = "inputs/goals"

DAMAGED = "damaged: not the verdict that its name promises; delete the file and judge the run again"
_ADVICE = "delete the file and judge the run again"
_GOALS_ADVICE = (
    "restore the file; if it is lost, delete it together with the verdicts of the panel that judges goals, "
    "which rest on it"
)

M = TypeVar("M", bound=Message)

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SHA_256 = re.compile(r"[0-9a-f]{64}")
_DIGEST_LENGTH = 16
_JUDGED_FAULTS = (ep.FAULT_PARTY_UNSPECIFIED, ep.FAULT_PARTY_AGENT)


def is_judged(episode: ep.Episode) -> bool:
    """Whether judges score a conversation: it ended cleanly or by a fault of the agent."""
    return episode.end.fault in _JUDGED_FAULTS


@dataclass(frozen=True, slots=True)
class PanelKey:
    """Where the verdicts of one judge on one version of a panel lie."""

    judge: str
    panel: str
    digest: str

    @property
    def folder(self) -> str:
        """The folder below the run's. InputError for a name that cannot be a folder's."""
        _check_name(self.judge)
        _check_name(self.panel)
        if not _SHA_256.fullmatch(self.digest):
            raise InputError(f"panel {self.panel}: {self.digest!r} is not a SHA-256 digest")
        return f"{VERDICTS}/{self.judge}/{self.panel}-{self.digest[:_DIGEST_LENGTH]}"


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
        self._judges = run.within(JUDGES)
        self._goals = run.within(GOALS)

    async def read_judging(self) -> run_pb2.Judging | None:
        """What the run is judged by; None when it was never judged."""
        if (data := await self._run.read(RUBRIC)) is None:
            return None
        rubric = _decoded(data, judge_pb2.Rubric(), f"{self._run.url}/{RUBRIC}")
        return run_pb2.Judging(rubric=rubric, judges=await self._read_judges())

    async def _read_judges(self) -> Sequence[run_pb2.JudgeEntry]:
        names = sorted([name async for name in self._judges.list_names() if _is_judge(name)])
        async with contextlib.aclosing(self._judges.read_many(names)) as blobs:
            return [self._decoded_judge(name, data) async for name, data in blobs]

    def _decoded_judge(self, name: str, data: bytes) -> run_pb2.JudgeEntry:
        entry = _decoded(data, run_pb2.JudgeEntry(), f"{self._judges.url}/{name}")
        if f"{entry.name}.json" != name:
            raise StoreError(f"{self._judges.url}/{name} is damaged: it is of judge {entry.name}; {_ADVICE}")
        return entry

    async def proposed(
        self, rubric: judge_pb2.Rubric, judges: Mapping[str, judge_pb2.JudgeInfo]
    ) -> run_pb2.Judging:
        """What would count if `rubric` did, with these judges beside those that the run has.

        Raises InputError for a judge's name that cannot be a file's, ManifestMismatch for a judge that was
        another one. Writes nothing.
        """
        known = {entry.name: entry.info for entry in await self._read_judges()}
        for name, info in judges.items():
            _check_name(name)
            self._check_same(name, known.get(name, info), info)
        merged = {**known, **judges}
        return run_pb2.Judging(
            rubric=rubric,
            judges=[run_pb2.JudgeEntry(name=name, info=merged[name]) for name in sorted(merged)],
        )

    async def begin(self, judging: run_pb2.Judging) -> None:
        """Let a proposal count from now on. ManifestMismatch when somebody added another judge meanwhile."""
        for judge in judging.judges:
            if not await self._judges.create(f"{judge.name}.json", _encoded(judge)):
                standing = {entry.name: entry.info for entry in await self._read_judges()}
                self._check_same(judge.name, standing[judge.name], judge.info)
        await self._run.replace(RUBRIC, _encoded(judging.rubric))

    def _check_same(self, name: str, was: judge_pb2.JudgeInfo, now: judge_pb2.JudgeInfo) -> None:
        if changes := message_differences(was, now):
            raise ManifestMismatch(
                f"judge {name} of {self._run.url} was another one: {'; '.join(changes)}. "
                "Undo the change to go on with it, or give the new judge another name."
            )

    async def judged_units(self, key: PanelKey) -> set[str]:
        """Ids of the units that have a verdict."""
        names = self._run.within(key.folder).list_names()
        return {unit async for name in names if (unit := unit_of(name)) is not None}

    async def write(self, record: run_pb2.VerdictRecord) -> bool:
        """Keep a verdict; False when there already is one, which stands."""
        folder = self._run.within(_key_of(record).folder)
        return await folder.create(record_name(record.unit_id), record.SerializeToString())

    async def read(self, judging: run_pb2.Judging) -> AsyncGenerator[run_pb2.VerdictRecord]:
        """Every verdict that counts, by judge, panel and unit. StoreError for one that is damaged."""
        for key in panel_keys(judging):
            async with contextlib.aclosing(self.scan_panel(key)) as records:
                async for name, record in records:
                    if record is None:
                        raise StoreError(f"{self._run.url}/{name}: {DAMAGED}")
                    yield record

    async def scan_panel(
        self, key: PanelKey, unit_ids: Iterable[str] | None = None
    ) -> AsyncGenerator[tuple[str, run_pb2.VerdictRecord | None]]:
        """The verdicts of one judge on one panel in the order of unit ids, each after its file below the run.

        Of the given units, which must have one, or of all. None for a file that does not hold the verdict
        that its name promises.
        """
        if unit_ids is None:
            unit_ids = await self.judged_units(key)
        names = [record_name(unit) for unit in sorted(unit_ids)]
        async with contextlib.aclosing(self._run.within(key.folder).read_many(names)) as blobs:
            async for name, data in blobs:
                yield f"{key.folder}/{name}", _verdict(data, name, key)

    async def read_goals(self, task_id: str) -> run_pb2.TaskGoals | None:
        """The goals of a task; None when they were not extracted yet."""
        name = goals_name(task_id)
        data = await self._goals.read(name)
        return None if data is None else self._decoded_goals(name, data)

    async def write_goals(self, goals: run_pb2.TaskGoals) -> run_pb2.TaskGoals:
        """Keep the goals of a task unless it has some; gives those that count."""
        if await self._goals.create(goals_name(goals.task_id), _encoded(goals)):
            return goals
        standing = await self.read_goals(goals.task_id)
        assert standing is not None  # nobody deletes
        return standing

    async def goals_names(self) -> set[str]:
        """`goals_name` of every task that has goals."""
        names = self._goals.list_names()
        return {name async for name in names if _SHA_256.fullmatch(name.removesuffix(".json"))}

    async def read_all_goals(self) -> AsyncGenerator[run_pb2.TaskGoals]:
        """The goals of every task that has some."""
        names = sorted(await self.goals_names())
        async with contextlib.aclosing(self._goals.read_many(names)) as blobs:
            async for name, data in blobs:
                yield self._decoded_goals(name, data)

    def _decoded_goals(self, name: str, data: bytes) -> run_pb2.TaskGoals:
        where = f"{self._goals.url}/{name}"
        goals = _decoded(data, run_pb2.TaskGoals(), where, _GOALS_ADVICE)
        if goals_name(goals.task_id) != name or not goals.goals:
            raise StoreError(f"{where} is damaged: it holds no goals of its task; {_GOALS_ADVICE}")
        return goals


def goals_name(task_id: str) -> str:
    """The file of a task's goals: a task id is text from a data set and never a path."""
    return f"{hashlib.sha256(task_id.encode()).hexdigest()}.json"


def _check_name(name: str) -> None:
    if not _KEY.fullmatch(name):
        raise InputError(f"{name!r} cannot name a judge or panel: use at most 63 letters, digits and . _ -")


def _is_judge(name: str) -> bool:
    return name.endswith(".json") and _KEY.fullmatch(name.removesuffix(".json")) is not None


def _key_of(record: run_pb2.VerdictRecord) -> PanelKey:
    return PanelKey(record.judge, record.verdict.panel, record.verdict.panel_digest)


def _verdict(data: bytes, name: str, key: PanelKey) -> run_pb2.VerdictRecord | None:
    try:
        record = run_pb2.VerdictRecord.FromString(data)
    except DecodeError:
        return None
    return record if record.unit_id == unit_of(name) and _key_of(record) == key else None


def _encoded(message: Message) -> bytes:
    content = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _decoded(data: bytes, message: M, name: str, advice: str = _ADVICE) -> M:
    try:
        found = json_format.ParseDict(orjson.loads(data), message)
    except (orjson.JSONDecodeError, json_format.ParseError, AttributeError, TypeError) as error:
        raise StoreError(f"{name} is damaged: {str(error).splitlines()[0]}; {advice}") from error
    if not found.ByteSize():
        raise StoreError(f"{name} is damaged: it holds nothing; {advice}")
    return found
