"""From a request of the contract to a prompt, laid out for the prefix cache of the model server; pure.

    system message      rules, policy          equal for all calls of a sweep
                        persona                equal for all calls of a persona
    tools               equal for all calls of a sweep
    first turn          case brief, and the customer's opening
    turns               appended; what was sent once is sent the same way ever after

Many chat templates put the tools behind the system text, so that whatever differs there is paid for with the
tools: the case brief, which is another one in each scenario, stands in the first turn instead. A turn is
rendered from its own message alone, or from messages before it, so no call rewrites the prefix of the one
before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

import orjson

from policysweep.domains.returns.resolution import RESOLUTION_TOOL, resolution_options, resolution_tool
from policysweep.errors import InputError
from policysweep.models.chat import Json
from policysweep.models.tools import openai_tool_calls, openai_tools
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.resolution import refusal_of

_PROMPTS = Path(__file__).with_name("prompts")


def _read(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def _persona_name(persona: ep.AgentPersona.ValueType) -> str:
    return ep.AgentPersona.Name(persona).removeprefix("AGENT_PERSONA_")


RULES = _read("rules")
"""For a case that ends with an outcome that the agent declares."""
RULES_TASK = _read("rules_task")
"""For a task without outcomes to declare, which the customer ends."""
_OPENING = Template(_read("opening"))
PERSONAS: Mapping[int, str] = {
    persona: f"{_persona_name(persona)}: {_read(f'persona_{_persona_name(persona).lower()}')}"
    for persona in ep.AgentPersona.values()
    if persona != ep.AGENT_PERSONA_UNSPECIFIED
}


def _digest() -> str:
    """The tool counts too: its texts tell the model how to end a case."""
    tool = resolution_tool(resolution_options()).SerializeToString(deterministic=True)
    parts = [RULES, RULES_TASK, _OPENING.template, *(PERSONAS[persona] for persona in sorted(PERSONAS))]
    return hashlib.sha256(b"\0".join([*(part.encode() for part in parts), tool])).hexdigest()


PROMPT_DIGEST = _digest()
"""SHA-256 over the templates and the tool that declares a resolution, hex."""


def chat_messages(request: agent_pb2.RespondRequest) -> list[Json]:
    """The system message and the turns, as OpenAI chat messages.

    Raises InputError, which names the field, for a request that is no conversation under a policy.
    """
    return [{"role": "system", "content": system_text(request)}, *conversation(request)]


def conversation(request: agent_pb2.RespondRequest) -> list[Json]:
    """The turns, one chat message each, in order. Raises InputError as `chat_messages` does."""
    if not request.messages:
        raise InputError("messages must not be empty: the customer's opening message comes first")
    messages: list[Json] = []
    for index, message in enumerate(request.messages):
        turn = _TURNS.get(message.role)
        if turn is None:
            raise InputError(f"messages[{index}].role is {message.role}: use CUSTOMER, AGENT or TOOL")
        messages.append(turn(message, request))
    if request.case_brief:
        messages[0] = {"role": "user", "content": _opening(request)}
    return messages


def _opening(request: agent_pb2.RespondRequest) -> str:
    """The customer's first message under what the agent is told of the case."""
    opening = request.messages[0]
    if opening.role != ep.ROLE_CUSTOMER:
        raise InputError("messages[0].role must be CUSTOMER where there is a case_brief")
    return _OPENING.substitute(case_brief=request.case_brief, message=opening.content)


def system_text(request: agent_pb2.RespondRequest, *, guide: str = "", with_policy: bool = True) -> str:
    """The system message: what most requests share comes first.

    `guide` is a section of a variant's own, behind the rules.
    """
    sections = [RULES if request.resolution_options else RULES_TASK]
    if guide:
        sections.append(guide)
    if with_policy:
        sections += _policy_sections(request.policy)
    if request.agent_persona != ep.AGENT_PERSONA_UNSPECIFIED:
        persona = PERSONAS.get(request.agent_persona)
        if persona is None:
            raise InputError(f"agent_persona is {request.agent_persona}, which this agent does not know")
        sections.append(f"## How you are asked to behave\n\n{persona}")
    return "\n\n".join(sections)


def _policy_sections(policy: scenario_pb2.Policy) -> Iterable[str]:
    if not policy.primary.text:
        raise InputError("policy.primary.text must not be empty: this agent works under a written policy")
    yield f"## The policy that applies\n\n{policy.primary.text}"
    for document in policy.related:
        yield f"## A related policy\n\n{document.text}"


def _customer_turn(message: ep.Message, request: agent_pb2.RespondRequest) -> Json:
    return {"role": "user", "content": message.content}


def _agent_turn(message: ep.Message, request: agent_pb2.RespondRequest) -> Json:
    turn: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = openai_tool_calls(message.tool_calls)
    return turn


def _tool_turn(message: ep.Message, request: agent_pb2.RespondRequest) -> Json:
    content = message.content
    if message.tool_name == RESOLUTION_TOOL:
        # The tool is between us and the model, and to the simulator it is none. What the model has to know is
        # what was wrong with its declaration.
        content = refusal_of(message.tool_call_id, request)
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}


_Turn = Callable[[ep.Message, agent_pb2.RespondRequest], Json]
_TURNS: Mapping[int, _Turn] = {
    ep.ROLE_CUSTOMER: _customer_turn,
    ep.ROLE_AGENT: _agent_turn,
    ep.ROLE_TOOL: _tool_turn,
}


def offered_tools(request: agent_pb2.RespondRequest, own: Sequence[ep.ToolDefinition] = ()) -> Sequence[Json]:
    """The variant's `own` tools, the request's, and the one that declares an outcome when there are any.

    Raises InputError, which names the tool, for a definition that no model server would take.
    """
    offer = agent_pb2.RespondRequest(
        tools=[*own, *request.tools], resolution_options=request.resolution_options
    )
    return _offered(offer.SerializeToString(deterministic=True), len(own))


@lru_cache(maxsize=64)
def _offered(serialised: bytes, own: int) -> Sequence[Json]:
    """Checked and converted once for each set of tools: a sweep has one. The first `own` are ours."""
    offer = agent_pb2.RespondRequest.FromString(serialised)
    names = [tool.name for tool in offer.tools]
    for at, tool in enumerate(offer.tools):
        index = at - own
        if not tool.name or tool.name == RESOLUTION_TOOL or tool.name in names[:at]:
            raise InputError(f"tools[{index}].name {tool.name!r} is empty, reserved or used twice")
        _check_schema(f"tools[{index}].parameters_json of {tool.name}", tool.parameters_json)
    tools = list(offer.tools)
    if offer.resolution_options:
        tools.append(resolution_tool(offer.resolution_options))
    return openai_tools(tools)


def _check_schema(where: str, parameters_json: str) -> None:
    try:
        schema = orjson.loads(parameters_json)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InputError(f"{where} is not a JSON object")
