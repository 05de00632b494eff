"""`policysweep judge`: judge the conversations of a run, only where a verdict is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console

from policysweep import telemetry
from policysweep.commands.driving import EXIT_INCOMPLETE, exit_with
from policysweep.commands.interrupt import EXIT_INTERRUPTED, interruptible
from policysweep.commands.report import print_report
from policysweep.commands.tls import tls_options
from policysweep.errors import InputError, PolicysweepError
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import Credentials
from policysweep.sweep import services
from policysweep.sweep.backlog import Backlog
from policysweep.sweep.display import Display
from policysweep.sweep.driver import first_error, logs_folder
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judge_plan import JudgePlan
from policysweep.sweep.judging import JudgeStage
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.metrics import SWEEP_METRICS
from policysweep.sweep.model_spec import JudgeSpec
from policysweep.sweep.plan import WHOLE, Shard
from policysweep.sweep.runner import Progress, RunnerSettings
from policysweep.sweep.runs import open_run
from policysweep.sweep.spec import SweepSpec
from policysweep.sweep.spec_fields import distinct, parse_rubric
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

_DEFAULTS = {name: field.default for name, field in SweepSpec.model_fields.items()}


@click.command()
@click.argument("run")
@click.option("--rubric", help="NAME@VERSION of the rubric; what the run is judged by so far if left out.")
@click.option("--panel", "panels", multiple=True, help="Judge this panel only; may be given several times.")
@click.option(
    "--judge",
    "models",
    multiple=True,
    metavar="[NAME=]MODEL",
    help="Model to judge with; several for several judges. Without NAME, the judge of the run that has this "
    "model, or a new one that is named after it.",
)
@click.option("--model-url", help="Base URL of the server of the models; none for rehearsal models.")
@click.option("--api-key-env", help="Environment variable that holds the server's API key.")
@click.option("--target", "targets", multiple=True, help="NAME=HOST:PORT of a judge service that runs.")
@click.option(
    "--concurrency",
    default=_DEFAULTS["concurrency"],
    show_default=True,
    type=click.IntRange(min=1),
    help="Conversations judged at a time, each with one call per panel.",
)
@click.option("--dry-run", is_flag=True, help="Say what it would cost, and judge nothing.")
@click.option("--report/--no-report", default=True, help="Print the report at the end.")
@click.option("--metrics-listen", default="", help="HOST:PORT to serve the driver's Prometheus metrics on.")
@tls_options
def judge(
    run: str,
    rubric: str | None,
    panels: tuple[str, ...],
    models: tuple[str, ...],
    model_url: str | None,
    api_key_env: str | None,
    targets: tuple[str, ...],
    concurrency: int,
    dry_run: bool,
    report: bool,
    metrics_listen: str,
    credentials: Credentials | None,
) -> None:
    """Judge the conversations of RUN, only where a verdict is missing; say first what that will cost.

    A panel whose rubric text was edited has no verdicts yet, so it alone is judged again. Exit code 0 when
    every verdict is there, 1 when some are missing: run the same command again. 130 after Ctrl-C.
    """
    telemetry.configure_logging("warning")
    judges = [*_by_model(models, model_url, api_key_env), *_by_target(targets)]
    if not judges:
        raise InputError("nobody to judge: give --judge MODEL or --target NAME=HOST:PORT")
    wanted = _Wanted(judges, _ref(rubric) if rubric else None, panels, concurrency, dry_run, credentials)
    telemetry.serve_metrics(metrics_listen, "driver")
    calm_collector()
    exit_with(_judge(run, wanted, report and not dry_run, Console()))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the options say. `judges` are fields of JudgeSpec; the name may be None."""

    judges: Sequence[dict[str, str | None]]
    rubric: judge_pb2.RubricRef | None
    panels: Sequence[str]
    concurrency: int
    dry_run: bool
    credentials: Credentials | None


def _by_model(
    models: Sequence[str], model_url: str | None, api_key_env: str | None
) -> Iterator[dict[str, str | None]]:
    for option in models:
        name, equals, model = option.partition("=") if "=" in option else (None, "", option)
        if not model or (equals and not name):
            raise InputError(f"--judge {option!r}: must be MODEL or NAME=MODEL")
        yield {"name": name, "model": model, "model_url": model_url, "api_key_env": api_key_env}


def _by_target(targets: Sequence[str]) -> Iterator[dict[str, str | None]]:
    for option in targets:
        name, _, address = option.partition("=")
        if not (name and address):
            raise InputError(f"--target {option!r}: must be NAME=HOST:PORT")
        yield {"name": name, "target": address}


def _ref(rubric: str) -> judge_pb2.RubricRef:
    try:
        return parse_rubric(rubric)
    except ValueError as error:
        raise InputError(f"--rubric: {error}") from error


def judge_specs(
    given: Sequence[dict[str, str | None]], judging: run_pb2.Judging | None
) -> Sequence[JudgeSpec]:
    """The judges by their fields, those without a name named as the run knows them or after their model.

    Raises InputError with all that is wrong.
    """
    named = [{**each, "name": each["name"] or _name_of(str(each["model"]), judging)} for each in given]
    try:
        specs = [JudgeSpec.model_validate(each) for each in named]
        distinct(tuple(spec.name for spec in specs))
    except ValidationError as error:
        raise InputError("; ".join(f"judge: {_problem(each)}" for each in error.errors())) from None
    except ValueError as error:
        raise InputError(f"judge: names {error}") from None
    return specs


def _problem(detail: Any) -> str:
    field = f"{detail['loc'][0]} " if detail["loc"] else ""
    return f"{field}{detail['msg'].removeprefix('Value error, ')}"


def _name_of(model: str, judging: run_pb2.Judging | None) -> str:
    known = [judge.name for judge in judging.judges if judge.info.model == model] if judging else []
    if len(known) > 1:
        raise InputError(
            f"judges {', '.join(known)} of the run have model {model}: give --judge NAME={model}"
        )
    return known[0] if known else re.sub(r"[^A-Za-z0-9._-]", "-", model)


async def _judge(run: str, wanted: _Wanted, report: bool, console: Console) -> int:
    ledger = await open_run(run)
    complete = await interruptible(_serve_and_judge(ledger, run, wanted, console))
    if complete is None:
        console.print("Interrupted. Run the same command again to go on.")
        return EXIT_INTERRUPTED
    if report:
        await print_report(ledger, console)
    return 0 if complete else EXIT_INCOMPLETE


async def _serve_and_judge(ledger: RunLedger, run: str, wanted: _Wanted, console: Console) -> bool:
    scenarios = (await ledger.read_inputs()).scenarios
    judging = await ledger.verdicts.read_judging()
    judges = judge_specs(wanted.judges, judging)
    rubric = wanted.rubric or (judging.rubric.ref if judging else parse_rubric(_DEFAULTS["rubric"]))
    settings = RunnerSettings(
        concurrency=wanted.concurrency,
        max_attempts=_DEFAULTS["max_attempts"],
        unit_seconds=_DEFAULTS["limits"].unit_seconds,
        outage_seconds=_DEFAULTS["outage_seconds"],
    )
    store, _, name = run.rstrip("/").rpartition("/")
    async with Launcher(logs_folder(store, name), console.print) as launcher:
        tls = wanted.credentials.files if wanted.credentials else None
        targets = await services.start_judges(judges, launcher, tls=tls)
        return await judge_run(
            ledger,
            scenarios,
            targets,
            rubric,
            settings,
            console,
            panels=wanted.panels,
            dry_run=wanted.dry_run,
            credentials=wanted.credentials,
        )


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
    credentials: Credentials | None = None,
) -> bool:
    """Say what judging will cost, judge what is missing, say how it ended; whether all verdicts are there."""
    progress = Progress()
    display = Display(progress, console)
    async with Channels(credentials) as channels:
        clients = [JudgeClient(name, target, channels) for name, target in targets.items()]
        stage = JudgeStage(ledger, scenarios, clients, settings, progress, display.event)
        plan = await stage.plan(rubric, panels, shard)
        console.print(plan.describe(), markup=False, highlight=False, soft_wrap=True)
        if dry_run:
            return not plan.missing
        SWEEP_METRICS.watch(ledger.name, "judge", progress)
        try:
            async with display.showing():
                backlog = await stage.run(plan)
        except* PolicysweepError as group:
            raise first_error(group) from group
    if plan.missing:
        console.print(_conclusion(plan, stage, backlog), markup=False, highlight=False, soft_wrap=True)
    return not stage.missing


def _conclusion(plan: JudgePlan, stage: JudgeStage, backlog: Backlog) -> str:
    said = f"{plan.verdicts - stage.missing:,} verdicts recorded now"
    if stage.missing:
        causes = [f"{judge}: {count} {reason}" for (judge, reason), count in sorted(stage.failures.items())]
        said += f", {stage.missing:,} are still missing; conversations by cause: {', '.join(causes)}"
        said += "; run the same command again to ask for them again"
    for judge in backlog.given_up():
        said += f"; judge {judge} was given up after an outage, {backlog.skipped[judge]} were not tried"
    return f"{said}."
