"""Prints what the judges found: scores of the agents, how far they can be trusted, and what judging took."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report import judging_sentences as say
from policysweep.report import sentences
from policysweep.report.sentences import Json, bounds, count, decimal, percent
from policysweep.report.tables import by_agent, columns, figure, listed, plain, section, sizes


def render_judging(summary: Json, console: Console) -> None:
    """Print the judging sections of a summary; nothing for a run that was not judged."""
    judging = summary["judging"]
    if judging is None:
        return
    for judge, found in judging["judges"].items():
        title = sentences.plain(f"Dimension scores by judge {judge}, 1 to 5, with 95% interval")
        section(console, title, _dimensions(judging, found, console.width))
        section(console, sentences.plain(f"How judge {judge} answered"), listed(say.judge(judge, found)))
    section(console, "Between judges", listed(say.between(judging)))
    if judging["calibration"]:
        title = "Judges against people: judge minus label, agreement beyond chance"
        section(console, title, [_calibration(judging["calibration"])])
        section(console, "Outcomes against people", listed(_outcome_calibration(judging["calibration"])))


def judge_tokens(summary: Json) -> Iterable[Table]:
    """What the judges' model calls took, as a table."""
    if summary["judging"] is None:
        return
    table = columns("Judge", "Model calls", "Prompt tokens", "Cached", "Written", words=1)
    for judge, found in summary["judging"]["judges"].items():
        table.add_row(plain(judge), *sentences.tokens(found["tokens"]))
    yield table


def _dimensions(judging: Json, found: Json, width: int) -> Iterable[Table]:
    agents: Json = found["agents"]
    wide, label, cell = sizes(len(agents), width)
    for table, block in by_agent(list(agents), label, cell, width):
        for dimension in judging["rubric"]["dimensions"]:
            levels = [agents[name]["dimensions"].get(dimension["key"]) for name in block]
            table.add_row(plain(dimension["title"]), *(_level(level, wide=wide) for level in levels))
        table.add_section()
        table.add_row("Least coverage in %", *(_coverage(agents[name]["dimensions"]) for name in block))
        yield table


def _level(level: Json | None, *, wide: bool) -> Text:
    """A score with its interval; how many metrics are missing when it has none."""
    if level is None:
        return Text("-", style="dim")
    if level["mean"] is None:
        missing, of = len(level["missing"]), len(level["metrics"])
        return Text("not judged" if not level["n"] else f"{missing} of {of} missing", style="dim")
    return figure(decimal(level["mean"]), bounds(level["interval"]), wide=wide)


def _coverage(levels: Json) -> str:
    shares = [level["coverage"] for level in levels.values() if level["coverage"] is not None]
    return percent(min(shares, default=None))


def _calibration(calibration: Json) -> Table:
    table = columns("Metric", "Judge", "n", "Bias", "Mean abs. error", "Weighted kappa", "Alpha", words=2)
    for metric in calibration["people"]:
        for position, (judge, found) in enumerate(calibration["judges"].items()):
            if metric in found["metrics"]:
                name = plain("" if position else metric)
                table.add_row(name, plain(judge), *_against_people(found["metrics"][metric]))
    return table


def _against_people(found: Json) -> Iterable[Text]:
    yield Text(count(found["n"]))
    bias = found["bias"]
    signed = "none" if bias["mean"] is None else say.signed(bias["mean"])
    yield figure(signed, bounds(bias["interval"]), wide=False)
    error = found["mean_absolute_error"]["mean"]
    yield Text("none" if error is None else decimal(error))
    for name in ("weighted_kappa", "alpha"):
        value = found[name]["value"]
        yield figure("none" if value is None else decimal(value), bounds(found[name]["interval"]), wide=False)


def _outcome_calibration(calibration: Json) -> Iterable[str]:
    for judge, found in calibration["judges"].items():
        if found["outcome"] and found["outcome"]["n"]:
            yield f"{judge} sees {say.outcome_calibration(found['outcome'])}."
