"""Prints policy banks at a terminal. Texts of others are shown without what a terminal would obey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from policysweep.bank_client import BankContents
from policysweep.bank_history import standing
from policysweep.bank_text import (
    entry_diff,
    entry_text,
    evidence_text,
    failure_text,
    source_text,
    when_text,
    word,
)
from policysweep.report.tables import banner, pairs, plain
from policysweep.v1 import policybank_pb2 as pb

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_INDENT = (0, 0, 0, 6)


def print_banks(banks: Sequence[pb.BankSummary], console: Console) -> None:
    """All banks, one a line. Ids stand last and are never broken: they are there to be copied."""
    line = "{:<20}  {:<14}  {:>8}  {:>7}  {}"
    heads = line.format("Last change (UTC)", "Method", "Revision", "Entries", "Bank")
    console.print(Text(heads, "bold"), soft_wrap=True)
    for bank in banks:
        changed = f"{bank.changed_at.ToDatetime():%Y-%m-%d %H:%M:%S}"
        cells = changed, word(bank, "method"), bank.revision, bank.entries, bank.bank_id
        console.print(plain(line.format(*cells)), soft_wrap=True)


def print_bank(bank: BankContents, entries: Iterable[pb.Entry], console: Console) -> None:
    """What a bank is, and some of its entries in full."""
    if bank.rehearsal:
        banner(console)
    pairs(_about(bank), console)
    for entry in entries:
        console.print()
        console.print(plain(entry.capability_id, "bold"))
        _block(entry_text(entry), console)
        _block(_shaped(entry), console, "dim")


def _about(bank: BankContents) -> Iterator[tuple[str, str]]:
    info = bank.info
    yield "Bank", bank.bank_id
    yield "Method", word(info, "method")
    yield "Revision", f"{bank.revision}, of {when_text(bank.revisions[-1])}"
    yield "Entries", str(len(bank.entries))
    yield "Curator", f"{info.curator.model}, prompts {info.curator.prompt_digest[:12]}"
    yield "Embedder", f"{info.embedder.name}, {info.embedder.dimension} numbers a text"
    yield "Made from", f"{info.source_digest[:12]} (digest of policy, tools and schema)"
    if info.HasField("forked_from"):
        yield "Forked from", f"{info.forked_from.bank_id} at revision {info.forked_from.revision}"
    if bank.snapshots:
        yield "Snapshots", ", ".join(f"{each.name} ({each.revision})" for each in bank.snapshots)


def _shaped(entry: pb.Entry) -> str:
    """Where an entry comes from."""
    lines = [f"Last changed by revision {entry.revision}."]
    lines += [f"Shaped by {source_text(each)}." for each in entry.provenance]
    return "\n".join(lines)


# ------------------------------------------------------------------ history


def print_history(
    bank: BankContents, revisions: Iterable[pb.Revision], console: Console, *, diffs: bool
) -> None:
    """Revisions of a bank, oldest first, with what they rest on."""
    if bank.rehearsal:
        banner(console)
    stands = {revision.number for revision in standing(bank.revisions)}
    for revision in revisions:
        undone = revision.number not in stands and revision.kind != pb.REVISION_KIND_ROLLBACK
        print_revision(revision, console, "taken back" if undone else "")
        if diffs and revision.diff:
            _print_diff(revision.diff, console)


def print_revision(revision: pb.Revision, console: Console, remark: str = "") -> None:
    """A revision: what was done, on which grounds, at which cost."""
    title = Text(f"{revision.number:>4}  {word(revision, 'kind').upper()}", style="bold")
    title.append_text(plain(f" {revision.capability_id}" if revision.capability_id else ""))
    title.append(f"  {when_text(revision)}", style="dim")
    title.append(f"  {remark}" if remark else "", style="bold yellow")
    console.print(title)
    for label, text in _grounds(revision):
        _block(f"{label}: {text}", console)


def _grounds(revision: pb.Revision) -> Iterator[tuple[str, str]]:
    if evidence := evidence_text(revision):
        yield "Feedback", evidence
    if revision.explanation:
        yield f"It said ({word(revision, 'regime')})", revision.explanation
    if failure := failure_text(revision):
        yield "Failure", failure
    if revision.rationale:
        yield "Why", revision.rationale
    usage = revision.usage
    if usage.model_calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        rejected = f", {revision.unusable_answers} unusable" if revision.unusable_answers else ""
        calls = "1 call" if usage.model_calls == 1 else f"{usage.model_calls} calls"
        yield "Curator", f"{tokens:,} tokens in {calls}{rejected}"


# ------------------------------------------------------------------ differences


Changes = Mapping[str, str]
"""Unified diff by the id of an entry that differs."""


def changes(old: Mapping[str, pb.Entry], new: Mapping[str, pb.Entry]) -> Changes:
    """How the entries of two states differ, by capability id, sorted."""
    diffs = {each: entry_diff(old.get(each), new.get(each)) for each in sorted(old.keys() | new.keys())}
    return {capability_id: diff for capability_id, diff in diffs.items() if diff}


def print_changes(
    old: Mapping[str, pb.Entry], new: Mapping[str, pb.Entry], console: Console, *, nothing: str
) -> None:
    """The entries that differ, each with its diff; `nothing` when none does."""
    found = changes(old, new)
    for capability_id, diff in found.items():
        what = "added" if capability_id not in old else "removed" if capability_id not in new else "changed"
        console.print(plain(f"{capability_id} ({what})", "bold"))
        _print_diff(diff, console)
    if not found:
        console.print(nothing)


def _print_diff(diff: str, console: Console) -> None:
    for line in diff.splitlines():
        console.print(Padding(plain(line, _DIFF_STYLES.get(line[:1], "")), _INDENT))


def _block(text: str, console: Console, style: str = "") -> None:
    for line in text.splitlines():
        console.print(Padding(plain(line, style), _INDENT))
