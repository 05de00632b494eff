"""Prints a summary as tables and sentences, readable from 80 columns on.

Names of agents, tasks and data sets come from outside: they are printed as plain text, never as markup, and
without control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report import sentences
from policysweep.report.outcomes import DISPLAY
from policysweep.report.sentences import Json, count, counted, decimal, interval, percent

_GAP = 2
_WIDE_LABEL, _WIDE_CELL = 23, 17  # "No outcome: agent fault", "25.3 [20.1, 31.0]"
_NARROW_LABEL, _NARROW_CELL = 21, 12  # "Refund with Gift Card", "[20.1, 31.0]"
_KAPPA_CELL = 14  # "[-0.02, -0.01]"


def render(summary: Json, console: Console) -> None:
    """Print a summary made by `summary.summarise`."""
    _header(summary, console)
    shares = "Outcomes: share of scored units in %, with 95% interval"
    _section(console, shares, _outcomes(summary, console.width))
    _section(console, "Agreement between agents", _list(sentences.agreement(summary)))
    pairs = "Pairs: Cohen's kappa with 95% interval below, same outcome in % above"
    _section(console, pairs, _kappas(summary, console.width))
    ceiling = "Noise ceiling: trials of one agent on one case that gave the same outcome"
    _section(console, ceiling, [_trials(summary)])
    _section(console, "Coverage: what became of the planned units", [_coverage(summary)])
    _section(console, "Faults, failures and errors", [_ends(summary)])
    _section(console, "Tokens", [_tokens(summary)])
    _section(console, "Tokens that were not reported", _list(sentences.unreported(summary)))
    _section(console, "Withheld or undefined", _list(sentences.notes(summary)))


def _section(console: Console, title: str, tables: Iterable[Table]) -> None:
    """A title and what follows; nothing when nothing follows."""
    for position, table in enumerate(table for table in tables if table.row_count):
        console.print()
        if position == 0:
            console.print(Text(title, style="bold underline"))
        console.print(table)


def _header(summary: Json, console: Console) -> None:
    if summary["rehearsal"]:
        banner = " REHEARSAL: a model without weights took part. No figure here is a finding. "
        console.print(Text(banner, style="bold black on yellow"))
        console.print()
    grid = Table.grid(padding=(0, _GAP))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in sentences.header(summary):
        grid.add_row(label, _plain(text))
    console.print(grid)


def _plain(text: str, style: str = "") -> Text:
    """Text that is shown as it is: rich reads markup in strings, not in Text."""
    return Text(sentences.plain(text), style=style)


def _list(lines: Iterable[str]) -> Iterable[Table]:
    """The lines with a hanging indent."""
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("-", _plain(line))
    return [grid]


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)


def _columns(*names: str, words: int) -> Table:
    """A table whose first `words` columns hold words and the others numbers."""
    table = _table()
    for position, name in enumerate(names):
        table.add_column(name, justify="left" if position < words else "right", overflow="fold")
    return table


def _by_agent(
    names: Sequence[str], label: int, cell: int, width: int
) -> Iterable[tuple[Table, Sequence[str]]]:
    """Tables with a column per agent, as many as it takes to fit all agents in."""
    each = max(1, (width - label) // (cell + _GAP))
    for start in range(0, len(names), each):
        block = names[start : start + each]
        table = _table()
        table.add_column("", width=label, overflow="fold")
        for name in block:
            table.add_column(_plain(name), width=cell, justify="right", overflow="fold")
        yield table, block


def _outcomes(summary: Json, width: int) -> Iterable[Table]:
    agents: Json = summary["agents"]
    wide = _WIDE_LABEL + len(agents) * (_WIDE_CELL + _GAP) <= width
    label, cell = (_WIDE_LABEL, _WIDE_CELL) if wide else (_NARROW_LABEL, _NARROW_CELL)
    for table, block in _by_agent(list(agents), label, cell, width):
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
    bounds = interval(found["interval"])
    cell = Text()
    cell.append(percent(found["share"]), style="bold" if found["share"] == commonest else "")
    cell.append(f" {bounds:>12}" if wide else f"\n{bounds}", style="dim")
    return cell


def _kappas(summary: Json, width: int) -> Iterable[Table]:
    """A matrix of the agents, in the order of the sweep."""
    names: list[str] = summary["agreement"]["agents"]
    if len(names) < 2:
        return
    pairs = {tuple(pair["agents"]): pair for pair in summary["agreement"]["pairwise"]}
    label = min(max(map(len, names)), _NARROW_LABEL)
    for table, block in _by_agent(names, label, _KAPPA_CELL, width):
        for row, name in enumerate(names):
            cells = []
            for other in block:
                below = names.index(other) < row
                cells.append(_pair(pairs.get((other, name) if below else (name, other)), below=below))
            table.add_row(_plain(name), *cells)
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
    table = _columns("Agent", "Trials", "Same outcome in %", "95% interval", "Cases", "Left out", words=1)
    for name, rates in summary["agreement"]["self"].items():
        for position, rate in enumerate(rates):
            table.add_row(
                _plain("" if position else name),
                count(rate["trials"]),
                percent(rate["value"]),
                interval(rate["interval"]),
                count(rate["cases"]),
                count(rate["left_out"]),
            )
    return table


def _coverage(summary: Json) -> Table:
    names = ("Agent", "Planned", "Scored", "Coverage", "Agent faults", "Other faults", "Failed", "Pending")
    table = _columns(*names, words=1)
    for name, section in summary["agents"].items():
        found = section["coverage"]
        own = section["faults"].get("AGENT", {"units": 0})["units"]
        low = section["outcomes"]["withheld"] is not None
        table.add_row(
            _plain(name),
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
    table = _table()
    table.add_column("Agent", overflow="fold")
    table.add_column("What", overflow="fold")
    table.add_column("Units", justify="right")
    table.add_column("Details", overflow="fold")
    for name, section in summary["agents"].items():
        for position, (what, units, details) in enumerate(sentences.ends(section)):
            table.add_row(_plain("" if position else name), _plain(what), units, _plain(details))
    return table


def _tokens(summary: Json) -> Table:
    table = _columns("Agent", "Side", "Model calls", "Prompt tokens", "Cached", "Written", words=2)
    for name, section in summary["agents"].items():
        for position, side in enumerate(("agent", "customer")):
            tokens = section["tokens"][side]
            cached = tokens["cached_share"]
            table.add_row(
                _plain("" if position else name),
                side,
                count(tokens["model_calls"]),
                count(tokens["prompt_tokens"]),
                f"{percent(cached)}%" if cached is not None else "not reported" if tokens["answers"] else "",
                count(tokens["completion_tokens"]),
            )
    return table
