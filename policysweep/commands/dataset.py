"""`policysweep dataset`: check, show, build, and make the worlds of a data set."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import click

from policysweep.datasets.build import build
from policysweep.datasets.check import check
from policysweep.datasets.problems import errors_of
from policysweep.datasets.show import Reader, list_scenarios, show_scenario
from policysweep.errors import InputError

_FILE = click.Path(path_type=Path, dir_okay=False)
_SOURCE_HELP = "SOURCE is builtin, a folder, a scenarios file, or hub:OWNER/NAME."


@click.group(name="dataset")
def dataset() -> None:
    """Check, show and build data sets, and make the order worlds that they lack."""


@dataset.command(name="check", epilog=_SOURCE_HELP)
@click.argument("source")
@click.option(
    "--full/--partial", default=None, help="Demand the counts of the complete authored set, or not."
)
def check_command(source: str, full: bool | None) -> None:
    """Tell all that is wrong with a data set, with file, line and field; exit code 1 on errors."""
    problems = check(source, full=full)
    for problem in problems:
        click.echo(str(problem))
    errors = len(errors_of(problems))
    click.echo(f"{source}: {_count(errors, 'error')}, {_count(len(problems) - errors, 'warning')}")
    if errors:
        sys.exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataset.command(name="show", epilog=_SOURCE_HELP)
@click.argument("source")
@click.argument("scenario_id", required=False)
@click.option(
    "--as",
    "reader",
    type=click.Choice(["agent", "customer", "designer"]),
    default="designer",
    show_default=True,
    help="Whose view to print.",
)
def show_command(source: str, scenario_id: str | None, reader: str) -> None:
    """Print a scenario as its reader sees it; without SCENARIO_ID, list the scenarios."""
    click.echo(
        show_scenario(source, scenario_id, cast("Reader", reader)) if scenario_id else list_scenarios(source)
    )


@dataset.command(name="build", epilog=_SOURCE_HELP)
@click.argument("source")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--force", is_flag=True, help="Replace the data set files of a folder that is not empty.")
def build_command(source: str, output: Path, force: bool) -> None:
    """Write a data set in the public layout: scenarios, tasks, personas and worlds as JSON Lines."""
    for name, lines in build(source, output, force=force).items():
        click.echo(f"{output / name}: {lines} lines")


@dataset.command(name="worlds", epilog=_SOURCE_HELP)
@click.argument("source")
@click.option("--model-url", required=True, help="OpenAI-compatible server, for example http://host:8000/v1.")
@click.option("--model", required=True, help="Name of the model that the server serves.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the server's key.")
@click.option("--output", type=_FILE, help="Worlds file, instead of beside the data set.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=8,
    show_default=True,
    help="Tasks asked for at a time.",
)
def worlds_command(
    source: str, model_url: str, model: str, api_key_env: str | None, output: Path | None, concurrency: int
) -> None:
    """Make the order worlds that a data set lacks, once for each task; run again to go on after a stop."""
    # Only this command needs the HTTP client and pydantic, and they take half a second to import.
    from policysweep.datasets.making.command import make_missing_worlds

    make_missing_worlds(
        source,
        model_url=model_url,
        model=model,
        api_key=_key(api_key_env),
        output=output,
        concurrency=concurrency,
        tell=click.echo,
    )


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"--api-key-env names {variable}, which is not set in the environment")
    return key
