"""The seven outcomes of DRIP-R, and `declare_resolution`: how a model with native tool calls declares one.

`declare_resolution` exists between an agent service and its model only. On the contract an outcome
travels in `RespondResponse.resolution`, so the order world executes no such call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import BeforeValidator, Field

from policysweep.domains.returns.schema import (
    ArgumentProblems,
    Arguments,
    parameters_schema,
    parse_arguments,
)
from policysweep.v1 import agent_pb2, episode_pb2

RESOLUTION_TOOL = "declare_resolution"

ResolutionType = Literal[
    "RETURN_REFUND_FULL_BANK",
    "RETURN_REFUND_PARTIAL_BANK",
    "RETURN_REFUND_GIFT_CARD",
    "DENY_REFUND",
    "REPLACEMENT_EXCHANGE",
    "ESCALATE_HUMAN_AGENT",
    "USER_ABORT",
]

_PREFIX = "OUTCOME_"

_MEANINGS = {
    episode_pb2.OUTCOME_RETURN_REFUND_FULL_BANK: (
        "The full price of the returned items goes back to the way the order was paid."
    ),
    episode_pb2.OUTCOME_RETURN_REFUND_PARTIAL_BANK: (
        "The items are returned and part of their price is paid back, less a fee or deduction."
    ),
    episode_pb2.OUTCOME_RETURN_REFUND_GIFT_CARD: (
        "The items are returned for a gift card or store credit instead of money."
    ),
    episode_pb2.OUTCOME_DENY_REFUND: "The return is refused: nothing is paid back or replaced.",
    episode_pb2.OUTCOME_REPLACEMENT_EXCHANGE: (
        "The items are exchanged for the same or another product instead of a refund."
    ),
    episode_pb2.OUTCOME_ESCALATE_HUMAN_AGENT: "The decision is handed over to a human colleague.",
    episode_pb2.OUTCOME_USER_ABORT: "The customer gives up the request before anything is decided.",
}


def outcome_name(outcome: episode_pb2.Outcome.ValueType) -> str:
    """The wire name, for example "DENY_REFUND"; "UNSPECIFIED" for no outcome."""
    return episode_pb2.Outcome.Name(outcome).removeprefix(_PREFIX)


_BY_NAME = {outcome_name(outcome): outcome for outcome in _MEANINGS}


def outcome_from_name(name: str) -> episode_pb2.Outcome.ValueType:
    """The outcome with this wire name. Raises ValueError for any other text."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"{name!r} is not an outcome; the seven are {', '.join(_BY_NAME)}") from None


def resolution_options() -> tuple[agent_pb2.ResolutionOption, ...]:
    """The seven outcomes with what each means, in the order of the contract."""
    return tuple(
        agent_pb2.ResolutionOption(outcome=outcome, description=meaning)
        for outcome, meaning in _MEANINGS.items()
    )


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


def _none_is_blank(value: Any) -> Any:
    return "" if value is None else value


Texts = Annotated[list[str], BeforeValidator(_none_is_empty)]


class ResolutionArguments(Arguments):
    """What `declare_resolution` takes."""

    resolution_type: ResolutionType = Field(description="The outcome of the case.")
    description: str = Field(
        min_length=1,
        description=(
            "Why: the conflict between the policy and the case, the interpretation that you chose, "
            "and what it costs either side."
        ),
    )
    conditions: Texts = Field(default=[], description="Conditions that the customer has to meet, if any.")
    customer_next_steps: Texts = Field(default=[], description="What the customer has to do next, in order.")
    message: Annotated[str, BeforeValidator(_none_is_blank)] = Field(
        default="", description="Your closing message to the customer."
    )


def resolution_tool(options: Sequence[agent_pb2.ResolutionOption]) -> episode_pb2.ToolDefinition:
    """The tool that declares one of `options`; each option's description is shown to the model.

    Raises ValueError without options.
    """
    if not options:
        raise ValueError("declare_resolution needs at least one outcome to offer")
    schema = parameters_schema(ResolutionArguments)
    kind = schema["properties"]["resolution_type"]
    kind["enum"] = [outcome_name(option.outcome) for option in options]
    kind["description"] = _described(kind["description"], options)
    return episode_pb2.ToolDefinition(
        name=RESOLUTION_TOOL,
        description=(
            "Declare the outcome and close the case. Call it once the outcome is settled with the customer "
            "and every step that it needs, such as a return or a refund, has succeeded."
        ),
        parameters_json=orjson.dumps(schema).decode(),
    )


def _described(intro: str, options: Iterable[agent_pb2.ResolutionOption]) -> str:
    meanings = (f"{outcome_name(option.outcome)}: {option.description}" for option in options)
    return "\n".join([intro, *meanings])


def parse_resolution(arguments_json: str) -> tuple[episode_pb2.Resolution, str]:
    """Read the verbatim arguments of `declare_resolution`: the resolution and the closing message.

    Raises ValueError, naming each field and what is wrong with it.
    """
    try:
        arguments = parse_arguments(ResolutionArguments, arguments_json)
    except ArgumentProblems as problems:
        raise ValueError(f"{RESOLUTION_TOOL} does not accept these arguments: {problems}") from None
    resolution = episode_pb2.Resolution(
        outcome=outcome_from_name(arguments.resolution_type),
        description=arguments.description,
        conditions=arguments.conditions,
        customer_next_steps=arguments.customer_next_steps,
    )
    return resolution, arguments.message
