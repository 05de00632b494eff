"""`policysweep tau2`: check and show the tau2-bench tasks, and write their gold actions for a rehearsal."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from google.protobuf import json_format
from google.protobuf.message import Message

from policysweep.datasets.tau2 import DOMAINS, Tau2Dataset, load_tau2
from policysweep.datasets.tau2_check import problems
from policysweep.datasets.tau2_gold import write_gold
from policysweep.domains.tau2 import installed, load_domain
from policysweep.v1 import tau2_pb2

_KINDS = {
    tau2_pb2.TAU2_TASK_KIND_ORIGINAL: "originals",
    tau2_pb2.TAU2_TASK_KIND_SISTER: "sisters",
    tau2_pb2.TAU2_TASK_KIND_CONTROL: "controls",
}
_DOMAIN = click.Choice(DOMAINS)


@click.group(name="tau2")
def tau2() -> None:
    """Check and show the tau2-bench tasks, and write their gold actions for a rehearsal."""


@tau2.command(name="check")
def check_command() -> None:
    """Check the package, its databases, and what the added tasks rest on; exit code 1 on errors."""
    found = [f"{domain} {problem}" for domain in DOMAINS for problem in problems(domain)]
    for line in found:
        click.echo(line)
    counts = "; ".join(f"{domain} {_counted(load_tau2(domain))}" for domain in DOMAINS)
    click.echo(f"{installed()}: {counts}; {len(found)} wrong")
    if found:
        sys.exit(1)


def _counted(dataset: Tau2Dataset) -> str:
    return ", ".join(f"{len(dataset.of_kind(kind))} {name}" for kind, name in _KINDS.items())


@tau2.command(name="show")
@click.argument("domain", type=_DOMAIN)
@click.argument("task_id", required=False)
@click.option(
    "--as",
    "reader",
    type=click.Choice(["agent", "user", "judge"]),
    default="judge",
    show_default=True,
    help="Whose view to print.",
)
def show_command(domain: str, task_id: str | None, reader: str) -> None:
    """Print a task as its reader sees it; without TASK_ID, list the domain's tasks and policy gaps."""
    dataset = load_tau2(domain)
    if task_id is None:
        _list(dataset)
        return
    task = dataset.task(task_id)
    if reader == "agent":
        click.echo(load_domain(domain).policy)
    else:
        click.echo(_json(task.user_scenario if reader == "user" else task))


def _list(dataset: Tau2Dataset) -> None:
    for gap in dataset.gaps:
        click.echo(f"{gap.gap_id}: {gap.clarification}")
    for task in dataset.tasks:
        about = f" {task.gap_id}" if task.gap_id else ""
        click.echo(f"{task.task_id} ({_KINDS[task.kind].removesuffix('s')}{about})")


def _json(message: Message) -> str:
    return json_format.MessageToJson(message, preserving_proto_field_name=True, ensure_ascii=False)


@tau2.command(name="gold")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def gold_command(file: Path) -> None:
    """Write what `policysweep rehearsal --tau2-gold FILE` follows. No agent under test may ever see it."""
    write_gold(file, [load_tau2(domain) for domain in DOMAINS])
    click.echo(f"{file}: the gold actions of all tasks, for rehearsals only")
