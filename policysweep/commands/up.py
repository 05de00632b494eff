"""`policysweep up`: start the services of a sweep and keep them running."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click
import uvloop

from policysweep import telemetry
from policysweep.commands.tls import tls_options
from policysweep.launch import Launcher
from policysweep.process import stop_event
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import Credentials
from policysweep.sweep import services
from policysweep.sweep.spec import SweepSpec, load_spec


@click.command()
@click.argument("sweep", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--logs", type=click.Path(file_okay=False, path_type=Path), help="Folder for the services' logs."
)
@tls_options
def up(sweep: Path, logs: Path | None, credentials: Credentials | None) -> None:
    """Start the services that the sweep file SWEEP describes, print their addresses, run until Ctrl-C."""
    telemetry.configure_logging("warning")
    spec = load_spec(sweep)
    folder = logs or Path(tempfile.gettempdir()) / "policysweep" / spec.name / "logs"
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_up(spec, folder, credentials))


async def _up(spec: SweepSpec, logs: Path, credentials: Credentials | None) -> None:
    stop = stop_event()
    tls = credentials.files if credentials else None
    async with Launcher(logs, click.echo) as launcher, Channels(credentials) as channels:
        endpoints = await services.start_services(spec, launcher, tls)
        infos = await services.agent_infos(endpoints, channels)
        if endpoints.rehearsal:
            click.echo(f"rehearsal  http://{endpoints.rehearsal}/v1")
        for target in endpoints.simulators:
            click.echo(f"simulator  {target}")
        for name, target in endpoints.agents.items():
            click.echo(f"agent      {target}  {name}: {infos[name].variant}, {infos[name].model}")
        click.echo(f"Logs: {logs}. Ctrl-C stops the services.")
        await stop.wait()
