"""The proof that a run is complete: exactly one record for every planned unit, and none besides.

The plan is derived again from the manifest and the inputs in the run's folder, not from the sweep file, so
the proof needs nothing but the folder. Two records of one unit cannot exist, because the unit's id is the
name of its record; a copy under another name is found by what it holds. The verdicts of a run that was judged
are held against its records, see `verify_verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import EPISODES, RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.records import DamagedRecord, record_name, record_problems
from policysweep.sweep.verdicts import is_judged
from policysweep.sweep.verify_verdicts import VerdictsResult, verify_verdicts
from policysweep.v1 import run_pb2


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What the proof found."""

    planned: int
    """Units of the plan."""
    recorded: int
    """Units of the plan with a sound record."""
    missing: tuple[str, ...]
    """Ids of planned units without a record, in the order of the plan."""
    failed: tuple[str, ...]
    """Those of the missing units that failed; the others were not tried to the end."""
    problems: tuple[str, ...]
    """Everything else that is wrong, one sentence each."""
    notes: tuple[str, ...] = field(default=())
    """Harmless findings, such as files that are not ours."""
    verdicts: VerdictsResult | None = None
    """None for a run that was never judged."""

    @property
    def ok(self) -> bool:
        """Whether every planned unit has exactly one sound record, and every record belongs to the plan.

        Verdicts must be sound as well, but some may be missing.
        """
        return not self.missing and not self.problems and not (self.verdicts and self.verdicts.problems)

    @property
    def judged(self) -> bool:
        """Whether the run was judged and no verdict is missing."""
        return self.verdicts is not None and not self.verdicts.missing


class PlanCheck:
    """Holds records against a plan, one at a time."""

    def __init__(self, planned: Iterable[run_pb2.Unit]) -> None:
        self._unseen = {unit.unit_id: unit for unit in planned}
        self._planned = len(self._unseen)
        self._recorded = 0
        self._problems: list[str] = []
        # Numbers, since a message that is a part of a record keeps all of the record in memory.
        self.to_judge: dict[str, int] = {}
        """When each conversation that judges score was recorded, in nanoseconds of the epoch, by unit id."""

    def see(self, record: run_pb2.UnitRecord | DamagedRecord) -> None:
        """Take a record into account; each name at most once."""
        unit_id = record.unit_id if isinstance(record, DamagedRecord) else record.unit.unit_id
        planned = self._unseen.pop(unit_id, None)
        problems = list(_problems(record, planned))
        if problems:
            self._problems.append(f"{EPISODES}/{record_name(unit_id)}: {'; '.join(problems)}")
        else:
            self._recorded += 1
        if isinstance(record, run_pb2.UnitRecord) and is_judged(record.episode):
            self.to_judge[unit_id] = record.recorded_at.ToNanoseconds()

    def result(
        self,
        failed: Iterable[str],
        problems: Iterable[str],
        notes: Iterable[str],
        verdicts: VerdictsResult | None,
    ) -> VerifyResult:
        """What was found once all records were seen.

        `failed` are the ids of units that failed and have no record.
        """
        missing = tuple(self._unseen)
        return VerifyResult(
            planned=self._planned,
            recorded=self._recorded,
            missing=missing,
            failed=tuple(unit_id for unit_id in failed if unit_id in self._unseen),
            problems=(*problems, *self._problems),
            notes=tuple(notes),
            verdicts=verdicts,
        )


async def verify_run(ledger: RunLedger) -> VerifyResult:
    """Prove a run. InputError when it is no run or its manifest or inputs cannot be read."""
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    check = PlanCheck(planned_units(manifest, inputs))
    names = await ledger.record_names()
    async for record in ledger.scan_records(names.unit_ids):
        check.see(record)
    judging = await ledger.verdicts.read_judging()
    return check.result(
        failed=[failure.unit.unit_id async for failure in ledger.read_failures()],
        problems=_input_problems(manifest.dataset, inputs),
        notes=[f"{EPISODES}/{name}: not a file of ours" for name in names.foreign],
        verdicts=await verify_verdicts(ledger.verdicts, judging, check.to_judge) if judging else None,
    )


def _problems(record: run_pb2.UnitRecord | DamagedRecord, planned: run_pb2.Unit | None) -> Iterator[str]:
    if planned is None:
        yield "no unit of the plan"
    if isinstance(record, DamagedRecord):
        yield f"damaged: {record.problem}; delete the file and run the sweep again"
        return
    if planned is not None and record.unit != planned:
        for name in run_pb2.Unit.DESCRIPTOR.fields_by_name:
            found, expected = getattr(record.unit, name), getattr(planned, name)
            if found != expected:
                yield f"{name} is {found}, planned is {expected}"
    yield from record_problems(record)


def _input_problems(dataset: run_pb2.DatasetInfo, inputs: RunInputs) -> Iterator[str]:
    """What contradicts the manifest in the inputs. An imported run needs no worlds."""
    tasks = {scenario.task_id for scenario in inputs.scenarios}
    if len(inputs.scenarios) != dataset.scenarios:
        yield f"the inputs hold {len(inputs.scenarios)} scenarios, the manifest says {dataset.scenarios}"
    if len(tasks) != dataset.tasks:
        yield f"the inputs hold {len(tasks)} tasks, the manifest says {dataset.tasks}"
    if not inputs.imported and (unplayable := sorted(tasks - inputs.worlds.keys())):
        yield f"the inputs hold no order world for {', '.join(unplayable)}"
