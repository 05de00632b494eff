"""`policysweep rehearsal`: serve the rehearsal model until told to stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import structlog
import uvloop

from policysweep import telemetry
from policysweep.errors import InputError
from policysweep.models.rehearsal import FaultKind, RehearsalConfig, RehearsalServer
from policysweep.process import announce, calm_collector, stop_event

_log = structlog.get_logger(__name__)


@click.command(name="rehearsal")
@click.option(
    "--listen",
    default="127.0.0.1:8100",
    show_default=True,
    metavar="HOST:PORT",
    help="Port 0 takes a free one.",
)
@click.option("--first-token", default=0.0, show_default=True, help="Seconds to the first token.")
@click.option("--per-token", default=0.0, show_default=True, help="Seconds per token written.")
@click.option("--jitter", default=0.0, show_default=True, help="Largest relative deviation of both, 0 to 1.")
@click.option(
    "--max-concurrency",
    default=0,
    show_default=True,
    help="Requests answered at a time per model; 0 is no limit.",
)
@click.option("--max-model-len", default=32_768, show_default=True, help="Context in tokens.")
@click.option(
    "--tool-calling/--no-tool-calling",
    default=True,
    show_default=True,
    help="Whether requests may offer tools; without, as a server that knows none.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND=RATE",
    help=f"Inject faults; may be given several times. Kinds: {', '.join(FaultKind)}.",
)
@click.option("--fault-seed", default=0, show_default=True, help="Decides which requests the faults hit.")
@click.option(
    "--tau2-gold",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of gold actions that the agent follows on tau2-bench domains; see docs/tau2.md.",
)
@click.option("--stop-on-stdin-eof", is_flag=True, help="Stop when standard input ends.")
def rehearsal(
    listen: str,
    first_token: float,
    per_token: float,
    jitter: float,
    max_concurrency: int,
    max_model_len: int,
    tool_calling: bool,
    faults: tuple[str, ...],
    fault_seed: int,
    tau2_gold: Path | None,
    stop_on_stdin_eof: bool,
) -> None:
    """Serve the rehearsal model: an OpenAI-compatible server without weights.

    Prints one JSON line with the address on stdout, then serves until SIGTERM or SIGINT. docs/rehearsal.md
    tells what it plays.
    """
    config = RehearsalConfig(
        listen=listen,
        first_token=first_token,
        per_token=per_token,
        jitter=jitter,
        max_concurrency=max_concurrency,
        max_model_len=max_model_len,
        tool_calling=tool_calling,
        faults=fault_rates(faults),
        fault_seed=fault_seed,
        tau2_gold=tau2_gold,
    )
    telemetry.configure_logging()
    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, stop_on_stdin_eof))


def fault_rates(given: tuple[str, ...]) -> dict[str, float]:
    """Read KIND=RATE options. Raises InputError; unknown kinds are left to the configuration."""
    rates: dict[str, float] = {}
    for option in given:
        kind, separator, rate = option.partition("=")
        if not separator:
            raise InputError(f"--fault {option} is not KIND=RATE, for example http_429=0.05")
        if kind in rates:
            raise InputError(f"--fault {kind} is given twice")
        try:
            rates[kind] = float(rate)
        except ValueError as error:
            raise InputError(f"--fault {option}: {rate!r} is not a number") from error
    return rates


async def _serve(config: RehearsalConfig, stop_on_stdin_eof: bool) -> None:
    stop = stop_event(stop_on_stdin_eof)
    async with RehearsalServer(config) as server:
        announce("rehearsal", server.address)
        _log.info("serving", service="rehearsal", address=server.address, faults=dict(config.faults))
        await stop.wait()
        _log.info("stopping", service="rehearsal")
