"""`policysweep probe`: find out what a model server can do, and what that makes of its model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import click
import orjson
import uvloop

from policysweep.errors import InputError
from policysweep.probe.capabilities import SERVED
from policysweep.probe.finding import ROLES, Capability, Finding, Role, Verdict
from policysweep.probe.rendering import as_json, finding_lines, result_lines
from policysweep.probe.run import Prober, ProbeResult, Tell
from policysweep.probe.scaffold import agent_entry, agent_name, files
from policysweep.probe.server import ModelServer
from policysweep.probe.usability import Usability, usability

EXIT_NOT_USABLE = 1
"""Exit code when the model cannot be used for what was asked."""


@click.command()
@click.argument("url")
@click.option("--model", help="Name under which the server serves the model; the first it lists if left out.")
@click.option("--api-key-env", default="", help="Name of the environment variable that holds the API key.")
@click.option(
    "--for", "roles", default=",".join(ROLES), show_default=True, help="What the model is wanted for."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="New folder for the agent's files; probe-NAME, with a number if that is taken, if left out.",
)
@click.option("--quick", is_flag=True, help="Leave out repeatability and throughput.")
@click.option("--time-limit", default=110.0, show_default=True, help="Seconds for everything together.")
@click.option("--json", "json_output", is_flag=True, help="Print JSON instead of text.")
def probe(
    url: str,
    model: str | None,
    api_key_env: str,
    roles: str,
    out: Path | None,
    quick: bool,
    time_limit: float,
    json_output: bool,
) -> None:
    """Find out what the OpenAI-compatible model server at URL can do, and write the agent's files.

    Each capability gets a verdict (yes, partly, no, unknown) with the server's flag that mends it. A model
    that can be used as the agent gets a sweep file and a Kubernetes folder. Exit code 0 when the model can be
    used for all that `--for` names, 1 when not, 2 for bad input.
    """
    wanted = _roles(roles)
    _check_new(out)
    if not time_limit > 0:
        raise InputError(f"--time-limit is {time_limit:g}; it must be more than 0")
    tell = _ignore if json_output else _print
    server = ModelServer(url, model, _key(api_key_env))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(_probe(server, time_limit, tell, measures=not quick))
    uses = [usability(result, role) for role in wanted]
    _print_result(result, uses, json_output)
    if result.verdict(SERVED) is Verdict.YES:
        folder = _write(result, uses, api_key_env, out)
        click.echo(f"Written to {folder}", err=json_output)
    raise SystemExit(0 if all(use.usable for use in uses) else EXIT_NOT_USABLE)


async def _probe(server: ModelServer, seconds: float, tell: Tell, *, measures: bool) -> ProbeResult:
    async with server:
        return await Prober(server, seconds, measures=measures, tell=tell).run()


def _roles(text: str) -> Sequence[Role]:
    known: Mapping[str, Role] = {role: role for role in get_args(Role)}
    names = [name.strip() for name in text.split(",")]
    if wrong := [name for name in names if name not in known]:
        raise InputError(f"--for {text}: {wrong[0]!r} is none of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _key(variable: str) -> str | None:
    if not variable:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"--api-key-env names {variable}, which is not set in the environment")
    return key


def _ignore(capability: Capability, finding: Finding) -> None:
    """JSON is printed at the end."""


def _print(capability: Capability, finding: Finding) -> None:
    for line in finding_lines(capability, finding):
        click.echo(line)


def _print_result(result: ProbeResult, uses: Sequence[Usability], json_output: bool) -> None:
    if json_output:
        click.echo(orjson.dumps(as_json(result, uses), option=orjson.OPT_INDENT_2))
        return
    for line in result_lines(result, uses):
        click.echo(line)


# ------------------------------------------------------------------------ files


def _check_new(out: Path | None) -> None:
    """Refuse a folder that exists before the time for a probe is spent."""
    if out is not None and out.exists():
        raise InputError(f"--out {out}: exists already; name a new folder, nothing is overwritten")


def _write(result: ProbeResult, uses: Sequence[Usability], api_key_env: str, out: Path | None) -> Path:
    """Write the findings, and the agent's files when the model is wanted as one and can be."""
    texts = {"probe.json": orjson.dumps(as_json(result, uses), option=orjson.OPT_INDENT_2).decode() + "\n"}
    for use in uses:
        if use.role == "agent" and use.usable and use.tool_mode is not None:
            texts |= files(agent_entry(result, use.tool_mode, api_key_env))
    folder = out or _free_folder(f"probe-{agent_name(result.model)}")
    try:
        folder.mkdir(parents=True)
        for path, text in texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder


def _free_folder(name: str) -> Path:
    folder, number = Path(name), 1
    while folder.exists():
        number += 1
        folder = Path(f"{name}-{number}")
    return folder
