"""How far the scores can be relied on: answers that failed, outcomes seen, agreement of judges and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.report import judging_sentences
from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.numbers import difference, estimate, share
from policysweep.report.html.parts import dim, folded, listed, section, table
from policysweep.report.html.sections.calibration import calibration
from policysweep.report.sentences import count, decimal, percent

Json = Mapping[str, Any]


def judges_section(summary: Json) -> Markup | None:
    """None for a run that is not judged."""
    judging = summary["judging"]
    if judging is None:
        return None
    return section(
        "judges",
        "How reliable the judges are",
        listed(_told(judging)),
        _answers(judging),
        _outcomes(judging),
        _between(judging),
        _self_preference(judging["between_judges"]["self_preference"]),
        calibration(judging),
    )


def _told(judging: Json) -> Iterator[str]:
    for name, found in judging["judges"].items():
        yield from judging_sentences.judge(name, found)
    yield from judging_sentences.between(judging)


def _answers(judging: Json) -> Child:
    columns = [
        "Judge", "Model", "Units", "Model calls", "Unusable answers", "Scores", "Absent scores",
        "Mean mass on the scale", "Below the least mass", "Spread of samples",
    ]  # fmt: skip
    rows = [_answers_row(name, found) for name, found in judging["judges"].items()]
    return table("What the judges answered", columns, rows, words=2)


def _answers_row(name: str, judge: Json) -> Sequence[Child]:
    answers = judge["answers"]
    scores = answers["scores"]
    absent = ", ".join(f"{_words(why)} {count(number)}" for why, number in scores["absent"].items())
    repeated = scores["mean_spread"]
    return [
        name,
        f"{judge['info']['model']}{' (rehearsal)' if judge['info']['rehearsal'] else ''}",
        count(answers["units"]),
        count(answers["model_calls"]),
        [count(answers["unusable"]), " ", dim(f"({percent(answers['unusable_rate'])}%)")],
        count(scores["present"]),
        absent or "0",
        "" if scores["mean_mass"] is None else f"{percent(scores['mean_mass'])}%",
        count(scores["low_mass"]) if scores["with_mass"] else "",
        "" if repeated is None else decimal(repeated),
    ]


def _outcomes(judging: Json) -> Child:
    rows = [
        [judge, agent, *_outcome(entry["outcome"])]
        for judge, found in judging["judges"].items()
        for agent, entry in found["agents"].items()
    ]
    columns = ["Judge", "Agent", "Same outcome in %", "Cohen's kappa", "Could not be read", "n"]
    return table("The outcome that the judge reads, against the one recorded", columns, rows, words=2)


def _outcome(found: Json) -> Sequence[Child]:
    rate = share(found["rate"], found["interval"], found["reason"])
    absent = sum(found["absent"].values())
    return [rate, estimate(found["cohen_kappa"]), count(absent), count(found["n"])]


def _between(judging: Json) -> Child:
    found = judging["between_judges"]
    if found["reason"]:
        return el("p", f"There is one judge, so {found['reason']}.", class_="dim")
    rows = [[title, estimate(alpha), count(alpha["items"])] for title, alpha in _alphas(judging)]
    caption = "Krippendorff's alpha between judges, ordinal for scores and nominal for the outcome"
    return [
        folded("Alpha of every metric", table(caption, ["Metric", "Alpha", "Items (n)"], rows)),
        folded("How the judges lean", _bias(judging, found["bias"])),
    ]


def _alphas(judging: Json) -> Iterator[tuple[str, Json]]:
    found = judging["between_judges"]
    if found["outcome_alpha"]:
        yield "Outcome", found["outcome_alpha"]
    for metric in judging["rubric"]["metrics"]:
        if metric["key"] in found["alpha"]:
            yield metric["title"], found["alpha"][metric["key"]]


def _bias(judging: Json, pairs: Sequence[Json]) -> Child:
    titles = {entry["key"]: entry["title"] for entry in judging["rubric"]["dimensions"]}
    rows = [
        [" to ".join(pair["judges"]), *(difference(pair["dimensions"].get(key)) for key in titles)]
        for pair in pairs
    ]
    caption = "Second judge minus first over the units that both scored, with 95% interval and n"
    return table(caption, ["Judges", *titles.values()], rows)


def _self_preference(found: Sequence[Json]) -> Child:
    """Judges that share a family with an agent."""
    return [
        [
            el(
                "p",
                el("strong", f"{entry['judge']} and {', '.join(entry['agents'])} are of one family"),
                f" ({', '.join(entry['families'])}). ",
                entry["reason"] or f"Compared with {', '.join(entry['against'])}:",
                class_="withheld",
            ),
            _excess(entry) if entry["dimensions"] else None,
        ]
        for entry in found
    ]


def _excess(entry: Json) -> Child:
    rows = [
        [_words(key), *(difference(found[part]) for part in ("own", "others", "excess"))]
        for key, found in entry["dimensions"].items()
    ]
    return table(
        f"What {entry['judge']} gives above judges of other families, with 95% interval and n",
        ["Dimension", "To its own family", "To others", "Excess"],
        rows,
    )


def _words(name: str) -> str:
    return name.lower().replace("_", " ")
