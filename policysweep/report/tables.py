"""Building blocks of the tables that are printed, readable from 80 columns on.

Names of agents, judges, tasks and data sets come from outside: they are printed as plain text, never as
markup, and without control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report import sentences

GAP = 2
"""Columns between two cells."""

WIDE_LABEL, WIDE_CELL = 23, 17
"""Columns of a row's name, and of a figure with its interval behind it: "25.3 [20.1, 31.0]"."""

NARROW_LABEL, NARROW_CELL = 21, 12
"""The same with the interval below: "[20.1, 31.0]"."""


def banner(console: Console) -> None:
    """What stands above everything that a rehearsal produced."""
    text = " REHEARSAL: a model without weights took part. No figure here is a finding. "
    console.print(Text(text, style="bold black on yellow"))
    console.print()


def pairs(rows: Iterable[tuple[str, str]], console: Console) -> None:
    """Labels with a text each."""
    grid = Table.grid(padding=(0, GAP))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(label, plain(text))
    console.print(grid)


def figure(value: str, bounds: str, *, wide: bool, style: str = "") -> Text:
    """A figure with its interval, if it has one, behind or below it."""
    cell = Text()
    cell.append(value, style=style)
    if bounds:
        cell.append(f" {bounds:>{NARROW_CELL}}" if wide else f"\n{bounds}", style="dim")
    return cell


def sizes(agents: int, width: int) -> tuple[bool, int, int]:
    """Whether a wide table has room for all agents; columns of a row's name and of a figure."""
    wide = WIDE_LABEL + agents * (WIDE_CELL + GAP) <= width
    return (True, WIDE_LABEL, WIDE_CELL) if wide else (False, NARROW_LABEL, NARROW_CELL)


def section(console: Console, title: str, tables: Iterable[Table]) -> None:
    """A title and what follows; nothing when nothing follows."""
    for position, table in enumerate(table for table in tables if table.row_count):
        console.print()
        if position == 0:
            console.print(Text(title, style="bold underline"))
        console.print(table)


def plain(text: str, style: str = "") -> Text:
    """Text that is shown as it is: rich reads markup in strings, not in Text."""
    return Text(sentences.plain(text), style=style)


def listed(lines: Iterable[str]) -> Iterable[Table]:
    """The lines with a hanging indent."""
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("-", plain(line))
    return [grid]


def new_table() -> Table:
    """A table without columns."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False)


def columns(*names: str, words: int) -> Table:
    """A table whose first `words` columns hold words and the others numbers."""
    table = new_table()
    for position, name in enumerate(names):
        table.add_column(name, justify="left" if position < words else "right", overflow="fold")
    return table


def by_agent(
    names: Sequence[str], label: int, cell: int, width: int
) -> Iterable[tuple[Table, Sequence[str]]]:
    """Tables with a column per agent, as many as it takes to fit all agents in."""
    each = max(1, (width - label) // (cell + GAP))
    for start in range(0, len(names), each):
        block = names[start : start + each]
        table = new_table()
        table.add_column("", width=label, overflow="fold")
        for name in block:
            table.add_column(plain(name), width=cell, justify="right", overflow="fold")
        yield table, block
