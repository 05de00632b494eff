"""`policysweep judge`: judge the conversations of a run, only where a verdict is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import click
import uvloop
from rich.console import Console

from policysweep import telemetry
from policysweep.commands.report import print_report
from policysweep.errors import InputError, PolicysweepError
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.rpc.server import calm_collector
from policysweep.sweep import services
from policysweep.sweep.display import Display
from policysweep.sweep.driver import first_error, logs_folder
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judging import JudgeStage
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import WHOLE, Shard
from policysweep.sweep.runner import Progress, RunnerSettings
from policysweep.sweep.runs import open_run
from policysweep.sweep.spec import JudgeSpec
from policysweep.sweep.spec_fields import parse_rubric
from policysweep.v1 import judge_pb2, scenario_pb2

EXIT_INCOMPLETE = 1
"""Exit code when verdicts are missing at the end."""


@click.command()
@click.argument("run")
@click.option("--rubric", default="drip-r@1", show_default=True, help="NAME@VERSION of the rubric.")
@click.option("--panel", "panels", multiple=True, help="Judge this panel only; may be given several times.")
@click.option("--judge", "models", multiple=True, help="Model to judge with; several for several judges.")
@click.option("--model-url", help="Base URL of the server of the models; none for rehearsal models.")
@click.option("--api-key-env", help="Environment variable that holds the server's API key.")
@click.option("--target", "targets", multiple=True, help="NAME=HOST:PORT of a judge service that runs.")
@click.option("--concurrency", default=64, show_default=True, type=click.IntRange(min=1))
@click.option("--dry-run", is_flag=True, help="Say what it would cost, and judge nothing.")
@click.option("--report/--no-report", default=True, help="Print the report at the end.")
def judge(
    run: str,
    rubric: str,
    panels: tuple[str, ...],
    models: tuple[str, ...],
    model_url: str | None,
    api_key_env: str | None,
    targets: tuple[str, ...],
    concurrency: int,
    dry_run: bool,
    report: bool,
) -> None:
    """Judge the conversations of RUN, only where a verdict is missing; say first what that will cost.

    A panel whose rubric text was edited has no verdicts yet, so it alone is judged again. Exit code 0 when
    every verdict is there, 1 when some are missing: run the same command again.
    """
    telemetry.configure_logging("warning")
    judges = _judges(models, model_url, api_key_env, targets)
    settings = RunnerSettings(concurrency, max_attempts=3, unit_seconds=900.0, outage_seconds=300.0)
    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        complete = runner.run(_judge(run, judges, _ref(rubric), panels, settings, dry_run, report))
    raise SystemExit(0 if complete else EXIT_INCOMPLETE)


def _judges(
    models: Sequence[str], model_url: str | None, api_key_env: str | None, targets: Sequence[str]
) -> list[JudgeSpec]:
    found = [
        {"name": model.replace("/", "-"), "model": model, "model_url": model_url, "api_key_env": api_key_env}
        for model in models
    ]
    for target in targets:
        name, equals, address = target.partition("=")
        if not equals:
            raise InputError(f"--target {target!r}: must be NAME=HOST:PORT")
        found.append({"name": name, "target": address})
    if not found:
        raise InputError("nobody to judge: give --judge MODEL or --target NAME=HOST:PORT")
    try:
        return [JudgeSpec.model_validate(spec) for spec in found]
    except ValueError as error:
        raise InputError(f"--judge: {error}") from error


def _ref(rubric: str) -> judge_pb2.RubricRef:
    try:
        return parse_rubric(rubric)
    except ValueError as error:
        raise InputError(f"--rubric: {error}") from error


async def _judge(
    run: str,
    judges: Sequence[JudgeSpec],
    rubric: judge_pb2.RubricRef,
    panels: Sequence[str],
    settings: RunnerSettings,
    dry_run: bool,
    report: bool,
) -> bool:
    console = Console()
    ledger = await open_run(run)
    scenarios = (await ledger.read_inputs()).scenarios
    async with Launcher(logs_folder(run, "."), console.print) as launcher:
        targets = await services.start_judges(judges, launcher)
        complete = await judge_run(
            ledger, scenarios, targets, rubric, settings, console, panels=panels, dry_run=dry_run
        )
    if report and not dry_run:
        await print_report(ledger, console)
    return complete


async def judge_run(
    ledger: RunLedger,
    scenarios: Sequence[scenario_pb2.Scenario],
    targets: Mapping[str, str],
    rubric: judge_pb2.RubricRef,
    settings: RunnerSettings,
    console: Console,
    *,
    panels: Sequence[str] = (),
    shard: Shard = WHOLE,
    dry_run: bool = False,
) -> bool:
    """Say what judging will cost, judge what is missing, say how it ended; whether all verdicts are there."""
    progress = Progress()
    async with Channels() as channels:
        clients = [JudgeClient(name, target, channels) for name, target in targets.items()]
        stage = JudgeStage(ledger, scenarios, clients, settings, progress)
        plan = await stage.plan(rubric, panels, shard)
        console.print(plan.describe(), markup=False, highlight=False)
        calls = plan.calls
        if dry_run or not calls:
            return not calls
        display = Display(progress, console)
        try:
            async with display.showing():
                backlog = await stage.run(plan)
        except* PolicysweepError as group:
            raise first_error(group) from group
    failed = progress.total("failed") + backlog.skipped.total()
    ending = f"; {failed} conversations lack verdicts, judge the run again to complete it" if failed else ""
    console.print(f"{calls:,} verdicts asked for{ending}.", markup=False, highlight=False)
    return failed == 0
