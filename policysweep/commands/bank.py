"""`policysweep bank`: make policy banks, look at them, take them out and in, restore an earlier revision."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from rich.console import Console

from policysweep.bank_client import BankClient, BankContents
from policysweep.bank_display import (
    changes,
    print_bank,
    print_banks,
    print_changes,
    print_history,
    print_revision,
)
from policysweep.bank_file import encode_records, read_bank, write_file
from policysweep.bank_history import standing
from policysweep.bank_markdown import REHEARSAL, bank_markdown
from policysweep.commands.bank_create import create_command
from policysweep.commands.bank_where import Where, named, ref_of, when_options, where_options
from policysweep.errors import InputError
from policysweep.v1 import policybank_pb2 as pb


@click.group(name="bank")
def bank() -> None:
    """Make policy banks, look at them, take them out and in, restore an earlier revision.

    Each command works on a policybank service that runs (--target), or on the embedded store in a folder
    (--store), for which it starts the service as long as it takes.
    """


bank.add_command(create_command)

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _print_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def _dict(message: Message) -> dict[str, Any]:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


# ------------------------------------------------------------------ looking


@bank.command(name="list")
@where_options
@_json
def list_command(where: Where, as_json: bool) -> None:
    """List all banks."""
    found = where.run(lambda client: client.banks())
    if as_json:
        _print_json({"banks": [_dict(each) for each in found]})
    elif found:
        print_banks(found, Console())
    else:
        click.echo("There are no banks.")


@bank.command(name="show")
@click.argument("bank_id", metavar="BANK")
@when_options
@click.option("--entry", metavar="ID", help="Only the entry with this capability id.")
@where_options
@_json
def show_command(
    bank_id: str,
    revision: int | None,
    snapshot: str | None,
    entry: str | None,
    where: Where,
    as_json: bool,
) -> None:
    """Print what BANK is and what it holds, with what shaped each entry."""
    ref = ref_of(bank_id, revision, snapshot)
    found = where.run(lambda client: client.read(ref))
    entries = [_entry(found, entry)] if entry is not None else list(found.entries.values())
    if not as_json:
        print_bank(found, entries, Console())
        return
    _print_json(
        {
            "bank_id": found.bank_id,
            "revision": found.revision,
            "rehearsal": found.rehearsal,
            "info": _dict(found.info),
            "entries": [_dict(each) for each in entries],
            "snapshots": [_dict(each) for each in found.snapshots],
        }
    )


def _entry(found: BankContents, capability_id: str) -> pb.Entry:
    if capability_id not in found.entries:
        raise InputError(
            f"bank {found.bank_id!r} has no entry {capability_id!r} at revision {found.revision}; it has "
            f"{_some(found.entries)}"
        )
    return found.entries[capability_id]


def _some(entries: Mapping[str, pb.Entry]) -> str:
    names = [repr(each) for each in entries][:5]
    more = f" and {len(entries) - len(names)} more" if len(entries) > len(names) else ""
    return f"{', '.join(names)}{more}" if names else "none"


@bank.command(name="history")
@click.argument("bank_id", metavar="BANK")
@click.option("--entry", metavar="ID", help="Only what concerns the entry with this capability id.")
@click.option("--diffs", is_flag=True, help="Print how each revision changed the text.")
@where_options
@_json
def history_command(bank_id: str, entry: str | None, diffs: bool, where: Where, as_json: bool) -> None:
    """Print the revisions of BANK, oldest first: what was done, on which feedback, why, at which cost."""
    found = where.run(lambda client: client.read(ref_of(bank_id)))
    revisions = [each for each in found.revisions if entry is None or _concerns(each, entry)]
    if not revisions:
        raise InputError(f"bank {bank_id!r} never had an entry {entry!r}; it has {_some(found.entries)}")
    if as_json:
        _print_json({"bank_id": bank_id, "revisions": [_dict(each) for each in revisions]})
    else:
        print_history(found, revisions, Console(), diffs=diffs)


def _concerns(revision: pb.Revision, capability_id: str) -> bool:
    held = (each.capability_id for each in revision.entries)
    return revision.capability_id == capability_id or capability_id in held


@bank.command(name="diff")
@click.argument("bank_id", metavar="BANK")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@where_options
@_json
def diff_command(bank_id: str, old: str, new: str, where: Where, as_json: bool) -> None:
    """Print how the entries of BANK differ between A and B: revisions, or names of snapshots."""

    async def both(client: BankClient) -> tuple[BankContents, BankContents]:
        return await client.read(named(bank_id, old)), await client.read(named(bank_id, new))

    before, after = where.run(both)
    if not as_json:
        nothing = f"Revisions {before.revision} and {after.revision} hold the same."
        print_changes(before.entries, after.entries, Console(), nothing=nothing)
        return
    diffs = changes(before.entries, after.entries)
    _print_json(
        {
            "bank_id": bank_id,
            "revisions": [before.revision, after.revision],
            "added": [each for each in diffs if each not in before.entries],
            "removed": [each for each in diffs if each not in after.entries],
            "changed": [each for each in diffs if each in before.entries and each in after.entries],
            "diffs": dict(diffs),
        }
    )


# ------------------------------------------------------------------ out and in


@bank.command(name="export")
@click.argument("bank_id", metavar="BANK")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="jsonl: all of it, for `import`; markdown: for a person, each entry with the evidence behind it.",
)
@when_options
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@where_options
def export_command(
    bank_id: str,
    file: Path,
    kind: str,
    revision: int | None,
    snapshot: str | None,
    force: bool,
    where: Where,
) -> None:
    """Write BANK, its history included, to FILE, which is there in full or not at all."""
    ref = ref_of(bank_id, revision, snapshot)
    found = where.run(lambda client: client.read(ref))
    content = encode_records(found.records()) if kind == "jsonl" else bank_markdown(found).encode()
    write_file(file, content, force=force)
    click.echo(f"{file}: bank {bank_id!r} at revision {found.revision}, {len(found.entries)} entries")
    if found.rehearsal:
        click.echo(REHEARSAL)


@bank.command(name="import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("bank_id", metavar="BANK")
@where_options
def import_command(file: Path, bank_id: str, where: Where) -> None:
    """Make BANK from FILE, which `export` wrote. The same file again changes nothing."""
    records = read_bank(file)
    done = where.run(lambda client: client.restore(bank_id, records), create=True)
    was = " was there already" if done.replayed else ""
    counts = f"{done.revisions} revisions, {done.entries} entries, {done.snapshots} snapshots"
    click.echo(f"bank {bank_id!r}{was}: {counts}")


# ------------------------------------------------------------------ rolling back


@bank.command(name="rollback")
@click.argument("bank_id", metavar="BANK")
@click.argument("to", metavar="REVISION")
@click.option("--expected-revision", type=click.IntRange(min=1), help="Refuse if BANK is at another one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@where_options
def rollback_command(
    bank_id: str,
    to: str,
    expected_revision: int | None,
    yes: bool,
    where: Where,
) -> None:
    """Restore REVISION of BANK, a number or the name of a snapshot, by a new revision.

    Prints first what that takes back, and asks. Nothing is lost: the revisions stay in the history.
    """
    if not (yes or sys.stdin.isatty()):
        raise InputError("nobody can be asked here: give --yes to roll back")

    async def both(client: BankClient) -> tuple[BankContents, BankContents]:
        return await client.read(ref_of(bank_id)), await client.read(named(bank_id, to))

    now, then = where.run(both)
    if then.revision == now.revision:
        raise InputError(f"bank {bank_id!r} is at revision {now.revision}: there is nothing to take back")
    _tell(now, then)
    if not yes:
        click.confirm("Roll back?", abort=True)
    expected = expected_revision or now.revision
    done = where.run(lambda client: client.roll_back(bank_id, then.revision, expected))
    click.echo(f"bank {bank_id!r} is at revision {done.number}, which restores {done.restored_revision}")


def _tell(now: BankContents, then: BankContents) -> None:
    """What a rollback from `now` to `then` does."""
    console = Console()
    held = {each.number: each for each in standing(now.revisions)}
    kept = {each.number: each for each in standing(then.revisions)}
    for title, numbers in (
        ("Taken back:", held.keys() - kept.keys()),
        ("Standing again:", kept.keys() - held.keys()),
    ):
        if numbers:
            console.print(title)
        for number in sorted(numbers):
            print_revision(now.revisions[number - 1], console)
    print_changes(now.entries, then.entries, console, nothing="No entry changes.")
