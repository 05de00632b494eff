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
    notes       [{about, reason}] for every figure that is withheld or undefined
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.json_format import MessageToDict

from policysweep.errors import InputError
from policysweep.report.across_agents import agreement_section
from policysweep.report.bootstrap import REPLICATES
from policysweep.report.per_agent import Json, Settings, agent_section, coverage_section
from policysweep.report.rows import Row
from policysweep.report.statistics import CONFIDENCE
from policysweep.report.tally import Tallies
from policysweep.v1 import run_pb2

SCHEMA_VERSION = 1

_NAMED_PAIRS = 3

_CONVENTIONS = {
    "interval": "Wilson score interval at the effective number of units, clustered by task",
    "wilson": "Wilson score interval as if all units were independent; too narrow when tasks matter",
    "bootstrap": "percentile interval of a bootstrap over tasks; too narrow for rare outcomes",
    "kappa_interval": "percentile interval of a bootstrap over tasks",
    "matching": "same scenario, agent persona and trial",
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
) -> Json:
    """The content of report.json.

    `planned` is the number of planned units of each agent, `failures` all failures of the run: those whose
    unit has a record are history and not counted. `seed` is the bootstrap's.

    Raises InputError for a coverage outside 0 to 1, and when plan, manifest and records do not fit together.
    """
    if not 0.0 <= min_coverage <= 1.0:
        raise InputError(f"The least coverage is a share between 0 and 1, not {min_coverage}.")
    settings = Settings(min_coverage, seed)
    tallies = _tallies(rows, planned, failures, manifest)
    agents = {
        entry.name: agent_section(tallies.agents[entry.name], entry.info, settings)
        for entry in manifest.agents
    }
    agreement = agreement_section(tallies, manifest.trials, settings)
    return {
        "schema_version": SCHEMA_VERSION,
        # One record is enough: a manifest that does not know must not make a rehearsal look real.
        "rehearsal": manifest.rehearsal or any(tally.rehearsal for tally in tallies.agents.values()),
        "run": _run(manifest),
        "methods": {
            "confidence": CONFIDENCE,
            "bootstrap_replicates": REPLICATES,
            "seed": seed,
            "min_coverage": min_coverage,
            **_CONVENTIONS,
        },
        "units": coverage_section(tallies.agents.values()),
        "agents": agents,
        "agreement": agreement,
        "notes": [*_agent_notes(agents), *_agreement_notes(agreement), *_self_notes(agreement["self"])],
    }


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


def _note(about: str, reason: str) -> Json:
    return {"about": about, "reason": reason}


def _agent_notes(agents: Mapping[str, Json]) -> Iterator[Json]:
    for name, section in agents.items():
        if reason := section["outcomes"]["withheld"]:
            yield _note(f"outcome shares of {name}", reason)


def _agreement_notes(agreement: Json) -> Iterator[Json]:
    if reason := agreement["withheld"]:
        yield _note("agreement between all agents", reason)
    elif reason := agreement["fleiss_kappa"]["reason"]:
        yield _note("Fleiss' kappa", reason)
    # Many pairs often share one reason.
    pairs: dict[str, list[str]] = {}
    for pair in agreement["pairwise"]:
        if reason := pair["cohen_kappa"]["reason"]:
            pairs.setdefault(reason, []).append(" and ".join(pair["agents"]))
    for reason, names in pairs.items():
        about = ", ".join(names) if len(names) <= _NAMED_PAIRS else f"{len(names)} pairs"
        yield _note(f"pairwise agreement of {about}", reason)


def _self_notes(own: Mapping[str, list[Json]]) -> Iterator[Json]:
    for name, rates in own.items():
        for rate in rates:
            if rate["reason"]:
                yield _note(f"agreement of {rate['trials']} trials of {name}", rate["reason"])
