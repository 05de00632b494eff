"""The command line. Subcommands live in `policysweep.commands` and are imported when they are called."""

from __future__ import annotations

import importlib
import sys

import click

from policysweep import __version__
from policysweep.errors import InputError, PolicysweepError

_COMMANDS = {
    "bank": "Make policy banks, look at them, take them out and in, restore an earlier revision.",
    "compare": "Compare two runs of one data set.",
    "dataset": "Check, show and build data sets, and make their order worlds.",
    "export": "Write a run in the public code's layout, as JSON Lines or as Parquet.",
    "import": "Turn conversations of the public code into a run.",
    "judge": "Judge a run's conversations, only where a verdict is missing.",
    "labels": "Import and list scores that people gave.",
    "probe": "Find out what a model server can do, and write the agent's files for its model.",
    "rehearsal": "Serve the rehearsal model: an OpenAI-compatible server without weights.",
    "report": "Summarise a run.",
    "run": "Run a sweep, or go on with one.",
    "show": "Print one unit's conversation.",
    "stream": "Run streams of tasks with memories that learn, or go on with them.",
    "tau2": "Check and show the tau2-bench tasks, and write their gold actions for a rehearsal.",
    "up": "Start the services of a sweep and keep them running.",
    "verify": "Prove that every planned unit of a run has exactly one record.",
}


class _LazyGroup(click.Group):
    """Imports a subcommand's module when it is needed: `policysweep run` must not wait for scipy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        # `import` is a keyword, so its module and function have another name.
        name = "import_run" if cmd_name == "import" else cmd_name
        command = getattr(importlib.import_module(f"policysweep.commands.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(cls=_LazyGroup)
@click.version_option(__version__, prog_name="policysweep")
def _root() -> None:
    """Evaluate LLM customer-service agents under imperfect policies."""


def main() -> None:
    """Run the command line; bad input and known failures end with one message and a non-zero exit code."""
    try:
        _root.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except PolicysweepError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(InputError.exit_code if isinstance(error, InputError) else 1)
