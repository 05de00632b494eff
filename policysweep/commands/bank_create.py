"""`policysweep bank create`: a bank for the scenarios of a data set, made from the policy that they share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click
from pydantic import ValidationError

from policysweep.bank_markdown import REHEARSAL
from policysweep.bank_text import word
from policysweep.commands.bank_where import Where, ref_of, where_options
from policysweep.datasets.load import load
from policysweep.domains.returns.environment import agent_tools
from policysweep.domains.returns.world_schema import database_schema
from policysweep.errors import InputError
from policysweep.sweep.model_spec import ModelSpec
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import scenario_pb2

_METHODS = [name.removeprefix("MEMORY_METHOD_").lower() for name in pb.MemoryMethod.keys()[1:]]
_DEFAULT = "policy_bank"


def _curator_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of the curator's model; the command gets them as `curator`, None without any."""

    @functools.wraps(command)
    def with_curator(
        *args: Any,
        model: str | None,
        model_url: str | None,
        api_key_env: str | None,
        model_timeout_seconds: float | None,
        **kwargs: Any,
    ) -> None:
        named = {
            "model": model,
            "model_url": model_url,
            "api_key_env": api_key_env,
            "model_timeout_seconds": model_timeout_seconds,
        }
        given = {name: value for name, value in named.items() if value is not None}
        command(*args, curator=_model(given) if given else None, **kwargs)

    for option in (
        click.option("--model-timeout-seconds", type=float, help="Limit on one call of the curator."),
        click.option("--api-key-env", metavar="NAME", help="Environment variable that holds its API key."),
        click.option("--model-url", metavar="URL", help="OpenAI-compatible server of the curator."),
        click.option("--model", help="With --store: the curator, such as rehearsal-judge for a rehearsal."),
    ):
        with_curator = option(with_curator)
    return with_curator


def _model(given: dict[str, Any]) -> ModelSpec:
    try:
        curator = ModelSpec(**given)
    except ValidationError as error:
        raise InputError("; ".join(map(_problem, error.errors()))) from None
    if curator.model is None:
        raise InputError("--model is missing: the name under which the server serves the curator")
    try:
        curator.check_served()
    except ValueError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from None
    return curator


def _problem(detail: Any) -> str:
    reason = detail.get("ctx", {}).get("error", detail["msg"])
    return f"--{str(detail['loc'][0]).replace('_', '-')}: {reason}"


@click.command(name="create")
@click.argument("bank_id", metavar="BANK")
@click.option("--dataset", metavar="SOURCE", help="The data set: builtin, a path, or hub:OWNER/NAME.")
@click.option("--scenario", metavar="ID", help="Take the policy of this scenario.")
@click.option("--method", type=click.Choice(_METHODS), help=f"How BANK remembers.  [default: {_DEFAULT}]")
@click.option("--fork-of", metavar="BANK[@REVISION]", help="Copy this bank instead; --method may differ.")
@click.option(
    "--curator-seconds",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Deadline of the whole work.",
)
@_curator_options
@where_options
def create_command(
    bank_id: str,
    dataset: str | None,
    scenario: str | None,
    method: str | None,
    fork_of: str | None,
    curator_seconds: float,
    curator: ModelSpec | None,
    where: Where,
) -> None:
    """Make BANK from the policy that the scenarios of a data set share, with the tools of its agents.

    The curator writes the entries: the model of the service at --target, or with --store the one that --model
    names. The same command again changes nothing.
    """
    if bool(dataset) == bool(fork_of):
        raise InputError("give either --dataset SOURCE or --fork-of BANK")
    _check_curator(where, curator, forks=fork_of is not None)
    request = pb.CreateBankRequest(bank_id=bank_id)
    if fork_of:
        request.fork_of.CopyFrom(_source(fork_of))
    else:
        assert dataset is not None
        request.MergeFrom(_content(dataset, scenario))
    if method or not fork_of:
        request.method = pb.MemoryMethod.Value(f"MEMORY_METHOD_{(method or _DEFAULT).upper()}")
    done = where.run(
        lambda client: client.create(request, curator_seconds), create=not fork_of, curator=curator
    )
    _tell(bank_id, done)


def _check_curator(where: Where, curator: ModelSpec | None, *, forks: bool) -> None:
    if where.target and curator is not None:
        raise InputError("the service at --target has a curator of its own: leave the options of a model out")
    if where.store and curator is None and not forks:
        raise InputError("--store needs --model, the curator that writes the entries")


def _source(fork_of: str) -> pb.BankRef:
    """BANK or BANK@REVISION; a bank's id may hold an @ itself."""
    bank_id, at, revision = fork_of.rpartition("@")
    if at and bank_id and revision.isdecimal():
        return ref_of(bank_id, int(revision))
    return ref_of(fork_of)


def _content(dataset: str, scenario: str | None) -> pb.CreateBankRequest:
    scenarios = load(dataset).scenarios
    if scenario is not None:
        scenarios = tuple(each for each in scenarios if each.scenario_id == scenario)
        if not scenarios:
            raise InputError(f"--scenario: {dataset} has no scenario {scenario!r}")
    policy = _shared_policy(dataset, scenarios)
    return pb.CreateBankRequest(policy=policy, tools=agent_tools(), database_schema=database_schema())


def _shared_policy(dataset: str, scenarios: Sequence[scenario_pb2.Scenario]) -> scenario_pb2.Policy:
    """The one policy of all scenarios. InputError when they have several."""
    first_with: dict[bytes, scenario_pb2.Scenario] = {}
    for each in scenarios:
        first_with.setdefault(each.policy.SerializeToString(deterministic=True), each)
    if len(first_with) > 1:
        some = ", ".join(each.scenario_id for each in list(first_with.values())[:5])
        raise InputError(
            f"the scenarios of {dataset} have {len(first_with)} different policies, and a bank begins with "
            f"one: choose it with --scenario, for example one of {some}"
        )
    return next(iter(first_with.values())).policy


def _tell(bank_id: str, done: pb.CreateBankResponse) -> None:
    first, usage = done.revision, done.usage
    was = " was there already" if done.replayed else ""
    made = f"{word(first.bank, 'method')}, {len(first.entries)} entries, revision {first.number}"
    click.echo(f"bank {bank_id!r}{was}: {made}")
    if usage.model_calls and not done.replayed:
        click.echo(
            f"The curator: {first.bank.curator.model}, {usage.model_calls} calls, "
            f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens"
        )
    if first.rehearsal:
        click.echo(REHEARSAL)
