"""From conversation records of the public DRIP-R code to a run.

    files -> collect: every line checked, episodes set aside on disk, scenarios told apart
          -> Batch: scenarios, units and the manifest
          -> write: the run begins, one record a conversation

`collect` refuses all files when one line of them is wrong, so a run is never half of a file. `write` may be
interrupted: the same import then completes it, because the same files give the same units.

An imported run has no simulator and no order worlds. Its agents carry the variant "imported", and its inputs
list its units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from google.protobuf import json_format

import policysweep
from policysweep.clock import now
from policysweep.datasets.digest import content_digest
from policysweep.datasets.files import Record
from policysweep.datasets.problems import SHOWN, Problem, errors_of
from policysweep.errors import InputError
from policysweep.interop.dripr import conversation
from policysweep.interop.dripr.scenarios import ScenarioBook
from policysweep.interop.dripr.shape import conversation_shape
from policysweep.interop.lines import read_objects
from policysweep.interop.spool import Spool
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.manifest import FORMAT
from policysweep.sweep.plan import planned_units
from policysweep.sweep.spec_fields import agent_name
from policysweep.v1 import agent_pb2, run_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep

VARIANT = "imported"
"""The variant of agents that did not play here."""

_LAYOUT_FOLDERS = frozenset({"with_resolution", "no_resolution", "without_resolution"})


@dataclass(frozen=True, slots=True)
class Source:
    """A file of conversation records, played by one agent."""

    path: Path
    agent: str
    named: bool
    """Whether somebody named the agent. Else the name in an exported record goes before this one."""


def source(path: Path, agent: str | None = None) -> Source:
    """A file with its agent; InputError when that is no name for an agent.

    Unless given, the agent is the folder of a `conversations.jsonl`, as for the public evaluator, and the
    name of any other file.
    """
    folders = [part for part in path.resolve().parent.parts if part not in _LAYOUT_FOLDERS]
    found = folders[-1] if path.name == "conversations.jsonl" else path.stem
    try:
        return Source(path, agent_name(found if agent is None else agent), agent is not None)
    except ValueError as error:
        raise InputError(f"{path}: the agent's name {error}: name it with --agent") from error


@dataclass(frozen=True, slots=True)
class _Entry:
    """A conversation that was set aside."""

    scenario: bytes
    agent: str
    persona: ep.AgentPersona.ValueType
    row: int
    trial: int | None
    rehearsal: bool
    place: str


@dataclass(slots=True)
class Batch:
    """The conversations of an import; the episode of the n-th entry is the n-th of the spool."""

    spool: Spool
    book: ScenarioBook = field(default_factory=ScenarioBook)
    entries: list[_Entry] = field(default_factory=list)

    def add(self, found: conversation.Conversation, origin: Source, place: str) -> None:
        """Set a conversation aside."""
        self.spool.append(found.episode.SerializeToString())
        self.entries.append(
            _Entry(
                scenario=self.book.add(found.scenario, place),
                agent=origin.agent if origin.named else found.agent or origin.agent,
                persona=found.episode.agent_persona,
                row=found.row,
                trial=found.trial,
                rehearsal=found.episode.rehearsal,
                place=place,
            )
        )

    def episode(self, number: int) -> ep.Episode:
        """The episode of an entry."""
        return ep.Episode.FromString(self.spool.read(number))


def collect(sources: Sequence[Source], spool: Spool, max_turns: int = conversation.MAX_TURNS) -> Batch:
    """Read and check all files. InputError that lists what is wrong, with file, line and field."""
    batch, problems = Batch(spool), list[Problem]()
    for each in sources:
        for record in read_objects(each.path):
            problems += [record] if isinstance(record, Problem) else _take(batch, record, each, max_turns)
    problems += [_at(place, f"{name!r} is another scenario here than in {first}: give one of them another id")
                 for name, first, place in batch.book.repeated()]  # fmt: skip
    _refuse(sources, problems)
    if not batch.entries:
        raise InputError(f"{', '.join(str(each.path) for each in sources)}: no conversation in it")
    return batch


def _take(batch: Batch, record: Record, origin: Source, max_turns: int) -> Iterator[Problem]:
    """Set a record aside, or tell what is wrong with it."""
    wrong = errors_of(record.problem(found) for found in conversation_shape(record.value))
    if not wrong:
        found, contradictions = conversation.read(record.value, max_turns)
        wrong = [record.problem(each) for each in contradictions]
    if not wrong:
        batch.add(found, origin, f"{record.file}:{record.line}")
    yield from wrong


def _at(place: str, message: str) -> Problem:
    file, _, line = place.rpartition(":")
    return Problem(file, int(line), "scenario_id", message)


def _refuse(sources: Sequence[Source], problems: Sequence[Problem]) -> None:
    if not problems:
        return
    shown = "".join(f"\n  {problem}" for problem in problems[:SHOWN])
    more = f"\n  and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    files = ", ".join(str(each.path) for each in sources)
    raise InputError(f"{files}: nothing was imported, because of {len(problems)} errors:{shown}{more}")


# ------------------------------------------------------------------------------------------------- the run


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run that can be written. `units` has the unit of each entry of the batch."""

    manifest: run_pb2.RunManifest
    inputs: RunInputs
    units: Sequence[run_pb2.Unit]


def plan_import(batch: Batch, name: str, sources: Sequence[Source], max_turns: int) -> ImportedRun:
    """The run that a batch makes. InputError when two records claim to be the same trial."""
    named = batch.book.named()
    trials = _trials(batch.entries)
    listed: dict[str, list[run_pb2.Unit]] = {scenario.scenario_id: [] for scenario in named.values()}
    for entry, trial in zip(batch.entries, trials, strict=True):
        unit = run_pb2.Unit(agent=entry.agent, agent_persona=entry.persona, trial=trial)
        listed[named[entry.scenario].scenario_id].append(unit)
    for units in listed.values():
        units.sort(key=lambda unit: (unit.trial, unit.agent_persona, unit.agent))
    inputs = RunInputs(list(named.values()), {}, listed)
    manifest = _manifest(batch, name, sources, inputs, max_turns)
    planned = {_key(unit): unit for unit in planned_units(manifest, inputs)}
    found = [
        planned[named[entry.scenario].scenario_id, entry.agent, entry.persona, trial]
        for entry, trial in zip(batch.entries, trials, strict=True)
    ]
    return ImportedRun(manifest, inputs, found)


def _key(unit: run_pb2.Unit) -> tuple[str, str, ep.AgentPersona.ValueType, int]:
    return unit.scenario_id, unit.agent, unit.agent_persona, unit.trial


def _trials(entries: Sequence[_Entry]) -> list[int]:
    """The trial of each entry among those of its scenario, agent and persona.

    It is the one that the record names; the others follow the order of their rows, then that of the files.
    """
    taken: dict[tuple[bytes, str, int], dict[int, str]] = {}
    trials = [0] * len(entries)
    unnamed: list[int] = []
    for number, entry in enumerate(entries):
        if entry.trial is None:
            unnamed.append(number)
            continue
        places = taken.setdefault((entry.scenario, entry.agent, entry.persona), {})
        if (first := places.setdefault(entry.trial, entry.place)) != entry.place:
            raise InputError(f"{entry.place}: policysweep.trial: {entry.trial} is that of {first} already")
        trials[number] = entry.trial
    following: dict[tuple[bytes, str, int], Iterator[int]] = {}
    for number in sorted(unnamed, key=lambda each: entries[each].row):
        entry = entries[number]
        group = entry.scenario, entry.agent, int(entry.persona)
        places = taken.get(group, {})
        trials[number] = next(trial for trial in following.setdefault(group, count()) if trial not in places)
    return trials


def _manifest(
    batch: Batch, name: str, sources: Sequence[Source], inputs: RunInputs, max_turns: int
) -> run_pb2.RunManifest:
    rehearsing = {entry.agent for entry in batch.entries if entry.rehearsal}
    scenarios = (
        json_format.MessageToDict(each, preserving_proto_field_name=True) for each in inputs.scenarios
    )
    return run_pb2.RunManifest(
        format=FORMAT,
        run=name,
        dataset=run_pb2.DatasetInfo(
            name=", ".join(dict.fromkeys(each.path.name for each in sources)),
            digest=content_digest(scenarios),
            scenarios=len(inputs.scenarios),
            tasks=len({scenario.task_id for scenario in inputs.scenarios}),
        ),
        agents=[
            run_pb2.AgentEntry(
                name=agent,
                info=agent_pb2.AgentInfo(variant=VARIANT, model=agent, rehearsal=agent in rehearsing),
            )
            for agent in dict.fromkeys(entry.agent for entry in batch.entries)
        ],
        trials=max(unit.trial for units in inputs.imported.values() for unit in units) + 1,
        limits=simulator_pb2.EpisodeLimits(max_turns=max_turns),
        rehearsal=bool(rehearsing),
        version=policysweep.__version__,
        created_at=now(),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """What an import did."""

    new: int
    """Records that were not there before."""
    without_outcome: int
    """Conversations that ended without one, new or not."""
    notes: Sequence[str]
    """Remarks for the user."""


async def write(ledger: RunLedger, batch: Batch, run: ImportedRun) -> Written:
    """Begin the run and write its records.

    Raises ManifestMismatch when another run has the name, StoreError when the store refuses.
    """
    notes = await ledger.begin(run.manifest, run.inputs)
    new = without_outcome = 0
    for number, unit in enumerate(run.units):
        episode = batch.episode(number)
        episode.episode_id = unit.unit_id
        episode.scenario_id, episode.task_id, episode.seed = unit.scenario_id, unit.task_id, unit.seed
        record = run_pb2.UnitRecord(unit=unit, episode=episode, recorded_at=now())
        new += await ledger.write_record(record)
        without_outcome += not episode.outcome
    return Written(new, without_outcome, notes)
