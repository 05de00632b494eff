"""What the judges' figures say, in plain sentences, for the terminal and other readers to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from policysweep.report.sentences import (
    Json,
    bounds,
    count,
    counted,
    decimal,
    interval,
    percent,
    unreported_of,
)


def signed(number: float) -> str:
    """A difference, as in "+0.31" or "-0.02"; "0.00" without a sign."""
    shown = decimal(number)
    return shown if shown.startswith("-") or float(shown) == 0.0 else f"+{shown}"


def mean(figure: Json) -> str:
    """A mean with its interval, or that there is none."""
    if figure["mean"] is None:
        return "none"
    return f"{decimal(figure['mean'])} {bounds(figure['interval'])}".rstrip()


def difference(figure: Json) -> str:
    """A difference with its sign and interval."""
    if figure["mean"] is None:
        return "none"
    return f"{signed(figure['mean'])} {bounds(figure['interval'])}".rstrip()


def judge(name: str, section: Json) -> Iterator[str]:
    """How far one judge's scores can be trusted, and what it says of the customer simulator."""
    answers, model = section["answers"], section["info"]["model"] or "model not stated"
    if not answers["units"]:
        yield f"{name} ({model}) has judged nothing yet."
        return
    scores = answers["scores"]
    units = counted(answers["units"], "unit")
    yield f"{name} ({model}) judged {units}{_unusable(answers)}; {_absent(scores)}."
    if scores["with_mass"]:
        yield (
            f"{count(scores['low_mass'])} of {count(scores['with_mass'])} scores have little probability "
            f"on the scale (mean {percent(scores['mean_mass'])}%)."
        )
    if scores["repeated"]:
        spread = decimal(scores["mean_spread"])
        yield f"Repeated samples of one score have a standard deviation of {spread} on average."
    yield from _outcomes(section["agents"])
    yield _customer(section["customer"]["all"]["overall"])
    yield from _differences(section["differences"])


def _unusable(answers: Json) -> str:
    """A run that was judged elsewhere may not say how many answers it took."""
    if not answers["model_calls"]:
        return ""
    share = f"{percent(answers['unusable_rate'])}% of its {count(answers['model_calls'])} answers"
    return f"; {share} could not be used in full"


def _customer(quality: Json) -> str:
    if quality["mean"] is None:
        return f"Customer simulator, not part of the scores above: no score ({quality['reason']})."
    units = counted(quality["n"], "unit")
    return f"Customer simulator, not part of the scores above: {mean(quality)} over {units}."


def _absent(scores: Json) -> str:
    gone = sum(scores["absent"].values())
    asked = count(scores["present"] + gone)
    if not gone:
        return f"all {asked} scores that apply are present"
    reasons = ", ".join(f"{why.lower().replace('_', ' ')} {count(n)}" for why, n in scores["absent"].items())
    return f"{count(gone)} of {asked} scores are absent ({reasons})"


def _outcomes(agents: Mapping[str, Json]) -> Iterator[str]:
    """Agreement of judged and recorded outcomes, all agents together."""
    agreed, n = (sum(found["outcome"][key] for found in agents.values()) for key in ("agreed", "n"))
    if n:
        shares = ", ".join(
            f"{name} {percent(found['outcome']['rate'])}% {interval(found['outcome']['interval'])}".rstrip()
            for name, found in agents.items()
            if found["outcome"]["rate"] is not None
        )
        listed = f": {shares}" if shares else ""
        yield f"It sees the recorded outcome in {count(agreed)} of {count(n)} units{listed}."


def _differences(differences: list[Json]) -> Iterator[str]:
    tested = [
        found["p_holm"]
        for pair in differences
        for found in pair["dimensions"].values()
        if found["p_holm"] is not None
    ]
    if tested:
        holding = sum(p < 0.05 for p in tested)
        yield (
            f"{count(holding)} of {count(len(tested))} differences between two agents in a dimension are "
            "larger than chance explains (5%, Holm within each pair)."
        )


def between(judging: Json) -> Iterator[str]:
    """Agreement, leaning and self-preference of several judges."""
    found = judging["between_judges"]
    titles = {each["key"]: each["title"] for each in judging["rubric"]["dimensions"]}
    if found["reason"] is None:
        yield from _alphas(found)
        for bias in found["bias"]:
            first, second = bias["judges"]
            leaning = _by_dimension(bias["dimensions"], titles)
            yield f"{second} minus {first} on the same units: {leaning}."
    for preference in found["self_preference"]:
        yield from _preference(preference, titles)


def _alphas(found: Json) -> Iterator[str]:
    values = {metric: each["value"] for metric, each in found["alpha"].items() if each["value"] is not None}
    if values:
        least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        yield (
            f"Krippendorff's alpha of {count(len(values))} metrics: median "
            f"{decimal(median(values.values()))}, from {decimal(values[least])} ({least}) to "
            f"{decimal(values[most])} ({most}); 0 is chance, 1 is perfect agreement."
        )
    outcome = found["outcome_alpha"]
    if outcome["value"] is not None:
        shown = f"{decimal(outcome['value'])} {bounds(outcome['interval'])}".rstrip()
        yield f"Alpha of the outcome that they see: {shown} over {counted(outcome['items'], 'unit')}."


def _preference(found: Json, titles: Mapping[str, str]) -> Iterator[str]:
    related = (
        f"{found['judge']} is of the family of {', '.join(found['agents'])} ({', '.join(found['families'])})"
    )
    if found["reason"]:
        yield f"{related}; {found['reason']}."
        return
    excess = {dimension: each["excess"] for dimension, each in found["dimensions"].items()}
    against, given = ", ".join(found["against"]), _by_dimension(excess, titles)
    yield f"{related}. What it gives them beyond its leaning, against {against}: {given}."


def _by_dimension(figures: Mapping[str, Json], titles: Mapping[str, str]) -> str:
    given = [
        f"{titles[dimension]} {difference(each)}"
        for dimension, each in figures.items()
        if each["mean"] is not None
    ]
    return ", ".join(given) or "no figure"


def unreported(summary: Json) -> Iterator[str]:
    """Answers of a judge whose server did not state its tokens."""
    if summary["judging"]:
        for name, section in summary["judging"]["judges"].items():
            yield from unreported_of(f"judge {name}", section["tokens"])


def outcome_calibration(found: Json) -> str:
    """A judge's outcomes against those that people saw."""
    kappa = found["cohen_kappa"]["value"]
    shown = "undefined" if kappa is None else decimal(kappa)
    rate = f"{percent(found['rate'])}% {interval(found['interval'])}".rstrip()
    return f"the outcome that people saw in {rate} of {counted(found['n'], 'label')}, Cohen's kappa {shown}"
