"""Prints a summary as tables and sentences, readable from 80 columns on.

Names of agents, tasks and data sets come from outside: they are printed as plain text, never as markup, and
without control characters.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report import judging_sentences, sentences
from policysweep.report.outcomes import DISPLAY
from policysweep.report.sentences import Json, count, counted, decimal, interval, percent
from policysweep.report.tables import (
    NARROW_LABEL,
    banner,
    by_agent,
    columns,
    figure,
    listed,
    new_table,
    pairs,
    plain,
    section,
    sizes,
)
from policysweep.report.terminal_judging import judge_tokens, render_judging

_KAPPA_CELL = 14  # "[-0.02, -0.01]"


def render(summary: Json, console: Console) -> None:
    """Print a summary made by `summary.summarise`."""
    _header(summary, console)
    shares = "Outcomes: share of scored units in %, with 95% interval"
    section(console, shares, _outcomes(summary, console.width))
    section(console, "Agreement between agents", listed(sentences.agreement(summary)))
    kappas = "Pairs: Cohen's kappa with 95% interval below, same outcome in % above"
    section(console, kappas, _kappas(summary, console.width))
    ceiling = "Noise ceiling: trials of one agent on one case that gave the same outcome"
    section(console, ceiling, [_trials(summary)])
    render_judging(summary, console)
    section(console, "Coverage: what became of the planned units", [_coverage(summary)])
    section(console, "Faults, failures and errors", [_ends(summary)])
    section(console, "Tokens", [_tokens(summary)])
    section(console, "Tokens of the judges", judge_tokens(summary))
    section(console, "Tokens that were not reported", listed(_unreported(summary)))
    section(console, "Withheld or undefined", listed(sentences.notes(summary)))


def _unreported(summary: Json) -> Iterable[str]:
    yield from sentences.unreported(summary)
    yield from judging_sentences.unreported(summary)


def _header(summary: Json, console: Console) -> None:
    if summary["rehearsal"]:
        banner(console)
    pairs(sentences.header(summary), console)


def _outcomes(summary: Json, width: int) -> Iterable[Table]:
    agents: Json = summary["agents"]
    wide, label, cell = sizes(len(agents), width)
    for table, block in by_agent(list(agents), label, cell, width):
        for key, outcome in DISPLAY.items():
            table.add_row(outcome, *(_share(agents[name]["outcomes"], key, wide=wide) for name in block))
        table.add_section()
        covered = [agents[name]["coverage"] for name in block]
        table.add_row("Scored units", *(count(found["scored"]) for found in covered))
        table.add_row("in % of planned units", *(percent(found["coverage"]) for found in covered))
        yield table


def _share(outcomes: Json, key: str, *, wide: bool) -> Text:
    """A share with its interval, on one line or two; the bare count where shares are withheld."""
    if outcomes["shares"] is None:
        return Text(f"({counted(outcomes['counts'][key], 'unit')})", style="dim")
    found = outcomes["shares"][key]
    commonest = max(share["share"] for share in outcomes["shares"].values())
    style = "bold" if found["share"] == commonest else ""
    return figure(percent(found["share"]), interval(found["interval"]), wide=wide, style=style)


def _kappas(summary: Json, width: int) -> Iterable[Table]:
    """A matrix of the agents, in the order of the sweep."""
    names: list[str] = summary["agreement"]["agents"]
    if len(names) < 2:
        return
    by_names = {tuple(pair["agents"]): pair for pair in summary["agreement"]["pairwise"]}
    label = min(max(map(len, names)), NARROW_LABEL)
    for table, block in by_agent(names, label, _KAPPA_CELL, width):
        for row, name in enumerate(names):
            cells = []
            for other in block:
                below = names.index(other) < row
                cells.append(_pair(by_names.get((other, name) if below else (name, other)), below=below))
            table.add_row(plain(name), *cells)
        yield table


def _pair(pair: Json | None, *, below: bool) -> Text:
    if pair is None:
        return Text("-", style="dim")
    if not below:
        return Text(percent(pair["all_agree"]["rate"]))
    kappa = pair["cohen_kappa"]
    if kappa["value"] is None:
        return Text("none", style="dim")
    cell = Text(decimal(kappa["value"]))
    if kappa["interval"]:
        low, high = kappa["interval"]
        cell.append(f"\n[{decimal(low)}, {decimal(high)}]", style="dim")
    return cell


def _trials(summary: Json) -> Table:
    table = columns("Agent", "Trials", "Same outcome in %", "95% interval", "Cases", "Left out", words=1)
    for name, rates in summary["agreement"]["self"].items():
        for position, rate in enumerate(rates):
            table.add_row(
                plain("" if position else name),
                count(rate["trials"]),
                percent(rate["value"]),
                interval(rate["interval"]),
                count(rate["cases"]),
                count(rate["left_out"]),
            )
    return table


def _coverage(summary: Json) -> Table:
    names = ("Agent", "Planned", "Scored", "Coverage", "Agent faults", "Other faults", "Failed", "Pending")
    table = columns(*names, words=1)
    for name, agent in summary["agents"].items():
        found = agent["coverage"]
        own = agent["faults"].get("AGENT", {"units": 0})["units"]
        low = agent["outcomes"]["withheld"] is not None
        table.add_row(
            plain(name),
            count(found["planned"]),
            count(found["scored"]),
            Text(f"{percent(found['coverage'])}%", style="bold red" if low else ""),
            count(own),
            count(found["recorded"] - found["scored"]),
            count(found["failed"]),
            count(found["pending"]),
        )
    return table


def _ends(summary: Json) -> Table:
    table = new_table()
    table.add_column("Agent", overflow="fold")
    table.add_column("What", overflow="fold")
    table.add_column("Units", justify="right")
    table.add_column("Details", overflow="fold")
    for name, agent in summary["agents"].items():
        for position, (what, units, details) in enumerate(sentences.ends(agent)):
            table.add_row(plain("" if position else name), plain(what), units, plain(details))
    return table


def _tokens(summary: Json) -> Table:
    table = columns("Agent", "Side", "Model calls", "Prompt tokens", "Cached", "Written", words=2)
    for name, agent in summary["agents"].items():
        for position, side in enumerate(("agent", "customer")):
            table.add_row(plain("" if position else name), side, *sentences.tokens(agent["tokens"][side]))
    return table
