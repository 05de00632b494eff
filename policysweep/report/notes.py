"""Every figure of a summary that is withheld or undefined, with the reason, in the order of the summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from policysweep.report.figures import Json
from policysweep.report.sentences import counted

_NAMED = 3


def notes(summary: Json, labels: int) -> Iterator[Json]:
    """About what, and why. `labels` is the number of human labels of the run."""
    yield from _agent_notes(summary["agents"])
    yield from _agreement_notes(summary["agreement"])
    yield from _self_notes(summary["agreement"]["self"])
    if summary["judging"]:
        yield from _judging_notes(summary["judging"])
    elif labels:
        yield _note(
            counted(labels, "human label"), "the run was not judged, so there is nothing to calibrate"
        )


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
    pairs: dict[str, list[str]] = defaultdict(list)
    for pair in agreement["pairwise"]:
        if reason := pair["cohen_kappa"]["reason"]:
            pairs[reason].append(" and ".join(pair["agents"]))
    for reason, names in pairs.items():
        yield _note(f"pairwise agreement of {_listed(names, 'pairs')}", reason)


def _self_notes(own: Mapping[str, list[Json]]) -> Iterator[Json]:
    for name, rates in own.items():
        for rate in rates:
            if rate["reason"]:
                yield _note(f"agreement of {rate['trials']} trials of {name}", rate["reason"])


def _judging_notes(judging: Json) -> Iterator[Json]:
    for why, number in judging["left_out"].items():
        yield _note(f"{counted(number, 'verdict')} left out", _LEFT_OUT[why])
    titles = {each["key"]: each["title"] for each in judging["rubric"]["dimensions"]}
    for judge, section in judging["judges"].items():
        # Agents and dimensions often lack the same metrics for the same reason.
        lacking: dict[str, list[str]] = defaultdict(list)
        for agent, found in section["agents"].items():
            for dimension, level in found["dimensions"].items():
                if level["missing"]:
                    lacking[_missing(level["missing"])].append(f"{titles[dimension]} of {agent}")
        for reason, scores in lacking.items():
            yield _note(f"{_listed(scores, 'dimension scores')} by {judge}", reason)
    if judging["between_judges"]["reason"] is None:
        yield from _alpha_notes(judging["between_judges"]["alpha"])


_LEFT_OUT = {
    "OTHER_EDITION_OF_PANEL": "their panel has been edited since, or is not in the rubric",
    "NO_RECORD": "their units have no record",
}


def _missing(missing: list[Json]) -> str:
    """The first reason; the names of the metrics without one often fill lines."""
    names = _listed([lacks["metric"] for lacks in missing], "metrics")
    verb = "has" if len(missing) == 1 else "have"
    return f"{names} {verb} no mean ({missing[0]['reason']})"


def _alpha_notes(alphas: Mapping[str, Json]) -> Iterator[Json]:
    undefined: dict[str, list[str]] = defaultdict(list)
    for metric, found in alphas.items():
        if found["value"] is None:
            undefined[found["reason"]].append(metric)
    for reason, metrics in undefined.items():
        yield _note(f"Krippendorff's alpha of {_listed(metrics, 'metrics')}", reason)


def _listed(names: list[str], noun: str) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} {noun}"
