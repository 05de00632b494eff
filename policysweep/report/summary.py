"""The content of report.json: every figure of a run with its n, its interval and its coverage.

`summarise` reads the rows once and returns plain dicts, lists, strings, numbers and None, equal for equal
input whatever the order of the rows. A figure that cannot be given is None, and `notes` says why.

Schema (version 1):
    schema_version, rehearsal
    run         name, version, data set, simulator, trials, persona assignment, limits and seed
    methods     confidence, bootstrap replicates and seed, least coverage, conventions in words
    units       planned, recorded, scored, failed, pending, coverage
    agents      by name, in the order of the sweep: see `per_agent.py`
    agreement   see `across_agents.py`
    splits      see `splits.py`
    judging     see `judging.py`; None for a run that was not judged
    breakdowns  see `breakdowns.py`; None without the scenarios
    notes       [{about, reason}] for every figure that is withheld or undefined
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.json_format import MessageToDict

from policysweep.errors import InputError
from policysweep.report.across_agents import agreement_section
from policysweep.report.bootstrap import REPLICATES
from policysweep.report.breakdowns import breakdowns_section
from policysweep.report.design import Design
from policysweep.report.figures import Json
from policysweep.report.judged import Judged
from policysweep.report.judging import judging_section
from policysweep.report.notes import notes
from policysweep.report.per_agent import Settings, agent_section, coverage_section
from policysweep.report.rows import Row
from policysweep.report.splits import splits_section
from policysweep.report.statistics import CONFIDENCE
from policysweep.report.tally import Tallies
from policysweep.report.units import Units
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import run_pb2, scenario_pb2

SCHEMA_VERSION = 1

_CONVENTIONS = {
    "interval": "Wilson score interval at the effective number of units, clustered by task",
    "wilson": "Wilson score interval as if all units were independent; too narrow when tasks matter",
    "bootstrap": "percentile interval of a bootstrap over tasks; too narrow for rare outcomes",
    "kappa_interval": "percentile interval of a bootstrap over tasks",
    "matching": "same scenario, agent persona and trial",
    "score_interval": "t interval with standard errors clustered by task",
    "dimension": "mean of its metrics' means, given when all of them are; turns averaged per unit first",
    "holm": "over the metrics, and over the dimensions, of one pair by one judge",
    "scored": "clean ends and the agent's own faults; a fault of the agent agrees with nothing",
}


def summarise(
    rows: Iterable[Row],
    planned: Mapping[str, int],
    failures: Iterable[run_pb2.UnitFailure],
    manifest: run_pb2.RunManifest,
    *,
    min_coverage: float = 0.95,
    seed: int = 0,
    verdicts: Verdicts | None = None,
    labels: Iterable[run_pb2.HumanLabel] = (),
    scenarios: Iterable[scenario_pb2.Scenario] = (),
) -> Json:
    """The content of report.json.

    `planned` is the number of planned units of each agent, `failures` all failures of the run: those whose
    unit has a record are history and not counted. `seed` is the bootstrap's. `verdicts` are those of a run
    that was judged, `labels` what people found of the same units, `scenarios` the scenarios of the run.

    Raises InputError for a coverage outside 0 to 1, and when plan, manifest and records do not fit together.
    """
    if not 0.0 <= min_coverage <= 1.0:
        raise InputError(f"The least coverage is a share between 0 and 1, not {min_coverage}.")
    settings = Settings(min_coverage, seed)
    recorded, failed, people = tuple(rows), tuple(failures), tuple(labels)
    tallies = _tallies(recorded, planned, failed, manifest)
    units = Units(recorded, list(tallies.agents))
    design = Design(found) if (found := tuple(scenarios)) else None
    judged = Judged(verdicts, units, planned) if verdicts else None
    models = {entry.name: entry.info.model for entry in manifest.agents}
    agents = {
        entry.name: agent_section(tallies.agents[entry.name], entry, settings) for entry in manifest.agents
    }
    agreement = agreement_section(tallies, manifest.trials, settings)
    summary: Json = {
        "schema_version": SCHEMA_VERSION,
        # One record is enough: a manifest that does not know must not make a rehearsal look real.
        "rehearsal": manifest.rehearsal or _rehearsed(tallies, verdicts),
        "run": _run(manifest),
        "methods": _methods(settings),
        "units": coverage_section(tallies.agents.values()),
        "agents": agents,
        "agreement": agreement,
        "splits": splits_section(tallies, agreement["tasks"], design),
        "judging": judging_section(judged, models, people, settings) if judged else None,
        "breakdowns": breakdowns_section(units, failed, planned, design, judged, settings)
        if design
        else None,
    }
    return {**summary, "notes": list(notes(summary, len(people)))}


def _tallies(
    rows: Iterable[Row],
    planned: Mapping[str, int],
    failures: Iterable[run_pb2.UnitFailure],
    manifest: run_pb2.RunManifest,
) -> Tallies:
    names = [entry.name for entry in manifest.agents]
    if sorted(names) != sorted(planned):
        raise InputError(
            f"The manifest has the agents {sorted(names)}, the plan has {sorted(planned)}; "
            "report the run with the manifest that it was planned with."
        )
    tallies = Tallies({name: planned[name] for name in names})
    tallies.add_rows(rows)
    tallies.add_failures(failures)
    for name, tally in tallies.agents.items():
        if tally.pending < 0:
            raise InputError(
                f"Agent {name!r} has {tally.recorded} records and {tally.failed} failed units, but only "
                f"{tally.planned} planned units; run `policysweep verify` on the run."
            )
    return tallies


def _methods(settings: Settings) -> Json:
    return {
        "confidence": CONFIDENCE,
        "bootstrap_replicates": REPLICATES,
        "seed": settings.seed,
        "min_coverage": settings.min_coverage,
        **_CONVENTIONS,
    }


def _rehearsed(tallies: Tallies, verdicts: Verdicts | None) -> bool:
    """Whether the rehearsal model had a part in any record or verdict."""
    judged = verdicts is not None and (
        any(notes.rehearsal for notes in verdicts.notes.values())
        or any(info.rehearsal for info in verdicts.infos.values())
    )
    return judged or any(tally.rehearsal for tally in tallies.agents.values())


def _run(manifest: run_pb2.RunManifest) -> Json:
    """The manifest without its agents, which have their own section, and without its date."""
    kept = run_pb2.RunManifest()
    kept.CopyFrom(manifest)
    for name in ("agents", "created_at", "rehearsal"):
        kept.ClearField(name)
    section: Json = MessageToDict(
        kept, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    del section["agents"], section["rehearsal"]
    return section
