"""A policy bank in Markdown, for a person who reviews it: each entry with the evidence behind it; pure.

Texts of models and policies stand in quotations and code, with everything escaped that Markdown or HTML would
obey, so that a bank cannot make a page that looks like something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from policysweep.bank_client import BankContents
from policysweep.bank_history import EvolutionStep, entry_evolution, standing
from policysweep.bank_text import SPEC_FIELDS, evidence_text, failure_text, source_text, when_text, word
from policysweep.v1 import policybank_pb2 as pb

REHEARSAL = "REHEARSAL: a model without weights took part. Nothing here is a finding."

_MARKUP = re.compile(r"[\\`*\[\]~|]|(?<!\w)_|_(?!\w)")
_LINE_START = re.compile(r"^(\d*)([-#+=]|(?<=\d)[.)])")
_FIELDS = tuple(sorted(SPEC_FIELDS, key=lambda field: field != "key_insight"))


def bank_markdown(bank: BankContents) -> str:
    """The page."""
    return "\n".join(_page(bank)).rstrip() + "\n"


def _page(bank: BankContents) -> Iterator[str]:
    yield f"# Policy bank {_code(bank.bank_id)}"
    if bank.rehearsal:
        yield from ("", f"> **{REHEARSAL}**")
    yield ""
    yield from (f"* {label}: {text}" for label, text in _about(bank).items())
    yield ""
    # What feedback shaped comes first: that is what there is to review.
    for entry in sorted(bank.entries.values(), key=lambda each: not each.provenance):
        yield from _entry(entry, entry_evolution(bank.revisions, entry.capability_id))
    yield from _rest(bank.revisions)


def _about(bank: BankContents) -> Mapping[str, str]:
    info, curator = bank.info, bank.info.curator
    about = {
        "Method": word(info, "method"),
        "Revision": f"{bank.revision}, of {when_text(bank.revisions[-1])}",
        "Entries": str(len(bank.entries)),
        "Shaped by feedback": ", ".join(map(_code, _shaped(bank))) or "none",
        "Curator": f"{_code(curator.model)}, prompts {_code(curator.prompt_digest[:12])}",
        "Embedder": _code(info.embedder.name),
        "Made from": _code(info.source_digest[:12]) + " (digest of policy, tools and schema)",
    }
    if info.HasField("forked_from"):
        source = info.forked_from
        about["Forked from"] = f"{_code(source.bank_id)} at revision {source.revision}"
    if bank.snapshots:
        about["Snapshots"] = ", ".join(f"{_code(each.name)} ({each.revision})" for each in bank.snapshots)
    return about


def _shaped(bank: BankContents) -> list[str]:
    return [capability_id for capability_id, entry in bank.entries.items() if entry.provenance]


# ------------------------------------------------------------------ an entry


def _entry(entry: pb.Entry, steps: Sequence[EvolutionStep]) -> Iterator[str]:
    yield from (f"## {_code(entry.capability_id)}", "")
    if entry.header:
        yield from (*_quoted(entry.header), "")
    for field in _FIELDS:
        if text := getattr(entry.spec, field).strip():
            yield from (f"**{field.replace('_', ' ').capitalize()}**", "", *_quoted(text), "")
    if entry.tool_names:
        yield from (f"**Tools**: {', '.join(map(_code, entry.tool_names))}", "")
    if entry.query:
        yield from ("**From a task that asked for**", "", *_quoted(entry.query), "")
    if entry.text:
        yield from ("**Memory**", "", *_quoted(entry.text), "")
    yield from ("### Evidence", "")
    for step in steps:
        yield from _step(step)


def _step(step: EvolutionStep) -> Iterator[str]:
    revision = step.revision
    yield f"**{_title(revision)}**"
    yield ""
    if revision.kind == pb.REVISION_KIND_CREATE:
        yield from (_plain(revision.rationale), "")
        yield from (f"* Shaped before by {_plain(source_text(each))}" for each in step.after.provenance)
        yield from [""] if step.after.provenance else []
        return
    yield from _grounds(revision)
    yield from (*_fenced(step.diff, "diff"), "")


def _title(revision: pb.Revision) -> str:
    marked = ", rehearsal" if revision.rehearsal else ""
    return f"Revision {revision.number}, {word(revision, 'kind')}, {when_text(revision)}{marked}"


def _grounds(revision: pb.Revision) -> Iterator[str]:
    """Which feedback, what went wrong, what was concluded."""
    if evidence := evidence_text(revision):
        yield f"* Feedback: {_plain(evidence)}"
    if regime := word(revision, "regime"):
        yield f"* Regime: {regime}"
    if failure := failure_text(revision):
        yield f"* Failure: {failure}"
    if revision.rationale:
        yield f"* Rationale: {_plain(revision.rationale)}"
    if revision.explanation:
        yield from ("", "What the feedback said:", "", *_quoted(revision.explanation))
    yield ""


def _rest(revisions: Sequence[pb.Revision]) -> Iterator[str]:
    """Feedback that changed nothing, and what was taken back: a reviewer asks for both."""
    stands = {revision.number for revision in standing(revisions)}
    omitted = [each for each in revisions if each.kind == pb.REVISION_KIND_OMIT and each.number in stands]
    if omitted:
        yield from ("## Feedback that changed nothing", "")
    for revision in omitted:
        yield from (f"**{_title(revision)}**", "", *_grounds(revision))
    restored = [each for each in revisions if each.kind == pb.REVISION_KIND_ROLLBACK]
    if restored:
        taken = [str(each.number) for each in revisions if each.number not in stands and each not in restored]
        yield from ("## Taken back", "")
        yield from (f"* {_title(each)}: restores revision {each.restored_revision}" for each in restored)
        yield f"* Revisions that no longer stand: {', '.join(taken) or 'none'}"


# ------------------------------------------------------------------ texts of others


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _plain(text: str) -> str:
    """A text within a line."""
    escaped = _MARKUP.sub(r"\\\g<0>", _shown(" ".join(text.split())))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINE_START.sub(r"\1\\\2", escaped)


def _quoted(text: str) -> Iterator[str]:
    """A text of several lines as a quotation; two blanks at an end keep it there."""
    yield from "  \n".join(f"> {_plain(line)}" for line in text.splitlines()).split("\n")


def _fence(text: str, least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _code(text: str) -> str:
    """A name, as it is."""
    shown = _shown(text)
    fence = _fence(shown, 1)
    space = " " if len(fence) > 1 or not shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _fenced(text: str, language: str) -> Iterator[str]:
    fence = _fence(text, 3)
    yield f"{fence}{language}"
    yield from map(_shown, text.splitlines())
    yield fence
