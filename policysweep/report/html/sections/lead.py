"""The head of the report: what was run, and what came out in five sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report import sentences
from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import facts, list_address
from policysweep.report.sentences import count, counted, decimal, interval, percent

Json = Mapping[str, Any]


def lead_section(summary: Json) -> Markup:
    """Name, facts and the five sentences."""
    return el(
        "section",
        el("h1", summary["run"]["run"] or "(no name)"),
        facts(list(sentences.header(summary))[1:]),
        el("ol", [el("li", sentence) for sentence in five_sentences(summary)], class_="lead"),
        id="summary",
        aria_label="Summary",
    )


def five_sentences(summary: Json) -> Iterator[Child]:
    """Coverage, agreement, outcomes, scores, disagreement: one sentence each, given or said to be missing."""
    yield _covered(summary)
    yield _agreed(summary)
    yield _granted(summary)
    yield _scored(summary)
    yield _divided(summary)


def _covered(summary: Json) -> Child:
    units, run = summary["units"], summary["run"]
    dataset = run.get("dataset", {})
    scenarios = counted(dataset.get("scenarios", 0), "scenario")
    agents, trials = counted(len(summary["agents"]), "agent"), counted(run["trials"], "trial")
    return [
        f"{agents} met {scenarios}, {trials} each: ",
        el("strong", f"{count(units['scored'])} of {count(units['planned'])} units are scored"),
        f", a coverage of {percent(units['coverage'])}%.",
    ]


def _agreed(summary: Json) -> Child:
    found = summary["agreement"]
    rate = found["all_agree"]
    if rate["rate"] is None:
        return f"How far the agents agree is not given: {found['withheld']}."
    return [
        f"All {len(found['agents'])} agents reach the same outcome in ",
        el("strong", f"{percent(rate['rate'])}% {interval(rate['interval'])}"),
        f" of {count(rate['n'])} matched conversations; by chance it would be {percent(rate['chance'])}%.",
    ]


def _granted(summary: Json) -> Child:
    shares = {
        name: section["outcomes"]["coarse"]["shares"]["GRANT"]
        for name, section in summary["agents"].items()
        if section["outcomes"]["coarse"]["shares"]
    }
    if not shares:
        return "What the agents decide is not given, because too few units are scored."
    ranked = sorted(shares, key=lambda name: (shares[name]["share"], name))
    low, high = ranked[0], ranked[-1]
    told: list[Child] = [_grants(low, shares[low])]
    if high != low:
        told += [", ", _grants(high, shares[high])]
    return [told, " of the cases with money, credit or goods."]


def _grants(name: str, share: Json) -> Child:
    return [
        el("b", name),
        " grants ",
        el("strong", f"{percent(share['share'])}% {interval(share['interval'])}"),
    ]


def _scored(summary: Json) -> Child:
    """The dimension and the two agents that the first judge tells apart most."""
    judging = summary["judging"]
    if judging is None:
        return "No unit is judged yet, so there are no scores."
    judge, found = next(iter(judging["judges"].items()))
    gaps = {each["key"]: gap for each in judging["rubric"]["dimensions"] if (gap := _gap(found, each["key"]))}
    if not gaps:
        return f"Judge {judge} has too few scores for a mean of any dimension."
    key = max(gaps, key=lambda each: gaps[each][1][0] - gaps[each][0][0])
    title = next(each["title"] for each in judging["rubric"]["dimensions"] if each["key"] == key)
    (low, worst), (high, best) = gaps[key]
    return [
        f"Judge {judge} tells the agents apart most in {title.lower()}: {best} has ",
        el("strong", decimal(high)),
        f" of 5, {worst} ",
        el("strong", decimal(low)),
        ".",
    ]


def _gap(judge: Json, dimension: str) -> tuple[tuple[float, str], tuple[float, str]] | None:
    """The lowest and the highest mean with its agent."""
    means = [
        (mean, name)
        for name, entry in judge["agents"].items()
        if (mean := entry["dimensions"].get(dimension, {}).get("mean")) is not None
    ]
    return (min(means), max(means)) if means else None


def _divided(summary: Json) -> Child:
    first = next(iter(summary["splits"]["tasks"]), None)
    if first is None or not first["between_agents_bits"]:
        return "No task divides the agents."
    return [
        "The agents split most on ",
        el("a", first["task"], href=list_address(task=first["task"])),
        f" ({decimal(first['between_agents_bits'])} bits between agents)",
        [": ", first["summary"]] if first["summary"] else ".",
    ]
