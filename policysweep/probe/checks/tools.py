"""Does the model call tools: by itself, on demand, several at once, and does it read their results?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from policysweep.domains.returns.environment import agent_tools
from policysweep.domains.returns.resolution import resolution_options, resolution_tool
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, Json
from policysweep.models.prompted_tools import PromptedTools
from policysweep.models.tools import openai_tools
from policysweep.probe import flags
from policysweep.probe.finding import Finding, Verdict, no, partly, unknown, yes
from policysweep.probe.server import ModelServer
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep

_SYSTEM = "You are a customer care agent. Look things up with your tools before you answer."
_LOOK_UP = "get_order_details"
_ORDER = "ORD-112-904417"
_TOOLS = openai_tools(
    [
        *(tool for tool in agent_tools() if tool.name in (_LOOK_UP, "get_policy_info")),
        resolution_tool(resolution_options()),
    ]
)
"""Of those that a sweep offers: two that are simple, and the one that has the richest schema."""
_RATING = {
    "type": "object",
    "properties": {
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "kind": {"type": "string", "enum": ["delivery", "product", "service"]},
    },
    "required": ["stars", "kind"],
    "additionalProperties": False,
}
_STRICT: Json = {
    "type": "function",
    "function": {
        "name": "record_rating",
        "description": "Records a rating of 1 to 5 stars.",
        "parameters": _RATING,
        # vLLM holds the arguments to the schema only where this is said.
        "strict": True,
    },
}
_CALL_AS_TEXT = (
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
    '"arguments":',
    '"parameters":',
)
"""How calls begin in the common chat templates: in a text they show that no parser took them out."""

_NO_FLAG = "no flag of the server: a model, or a chat template, that calls tools by itself"


def _request(
    server: ModelServer,
    said: str,
    tools: Sequence[Json] = _TOOLS,
    choice: str | Json | None = None,
    turns: Sequence[Json] = (),
) -> ChatRequest:
    return ChatRequest(
        messages=[{"role": "system", "content": _SYSTEM}, {"role": "user", "content": said}, *turns],
        tools=tools,
        tool_choice=choice,
        sampling=agent_pb2.Sampling(max_tokens=server.answer_tokens),
    )


def _arguments(text: str) -> Mapping[str, Any] | None:
    """The object that arguments are; None when they are none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _sound(reply: ChatReply, tools: Sequence[Json] = _TOOLS) -> int:
    """How many calls name a tool that was offered, with an object for arguments."""
    names = {tool["function"]["name"] for tool in tools}
    return sum(
        call.name in names and _arguments(call.arguments_json) is not None for call in reply.tool_calls
    )


def _malformed(reply: ChatReply) -> Finding:
    call = reply.tool_calls[0]
    return partly(f"the call is malformed: {call.name!r} with {_shortened(call.arguments_json)!r}")


def _cut(reply: ChatReply) -> bool:
    return reply.finish_reason == ep.FINISH_REASON_LENGTH


def _cut_off(server: ModelServer, reply: ChatReply) -> Finding:
    """A weak model that is held to the form of a call may fill its values with blanks for ever."""
    begun = any(sign in reply.text for sign in _CALL_AS_TEXT)
    what = "a call was begun and not ended" if begun else "no call came"
    return unknown(f"{what} within {server.answer_tokens} tokens")


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."


async def tools_auto(server: ModelServer) -> Finding:
    """The model decides to call a tool, and the server parses the call."""
    return await _calls_by_itself(server, server)


async def tools_prompted(server: ModelServer) -> Finding:
    """The model calls a tool that stands in its prompt, in the form that the prompt asks for."""
    found = await _calls_by_itself(server, PromptedTools(server))
    return found if found.verdict is Verdict.YES else no(found.detail)


async def _calls_by_itself(server: ModelServer, model: ChatModel) -> Finding:
    reply = await model.complete(_request(server, f"Where is my order {_ORDER}? Please look it up."))
    if _sound(reply):
        call = reply.tool_calls[0]
        return yes(f"called {call.name} with {_shortened(call.arguments_json)}")
    if reply.tool_calls:
        return _malformed(reply)
    if _cut(reply):
        return partly(
            f"the tools are accepted, but no call came within {server.answer_tokens} tokens", _NO_FLAG
        )
    if any(sign in reply.text for sign in _CALL_AS_TEXT):
        return no(
            "the call came as text: the parser is missing, or that of another model", flags.TOOL_CALLING
        )
    return partly("the tools are accepted, but the model answered without a call", _NO_FLAG)


async def tools_required(server: ModelServer) -> Finding:
    """`tool_choice: required` leads to a call, where the model would say hello."""
    # Of a tool whose arguments are short, whatever model writes them.
    reply = await server.complete(_request(server, "Hello!", (_STRICT,), "required"))
    if _sound(reply, (_STRICT,)):
        return yes(f"called {reply.tool_calls[0].name}")
    if reply.tool_calls:
        return _malformed(reply)
    return _cut_off(server, reply) if _cut(reply) else no("no call came, though one was required")


async def tools_strict(server: ModelServer) -> Finding:
    """A tool that is named, with `strict`, is called with arguments that fit its schema."""
    named = {"type": "function", "function": {"name": "record_rating"}}
    reply = await server.complete(_request(server, "I give 17 stars for everything!", (_STRICT,), named))
    if _cut(reply):
        return _cut_off(server, reply)
    if not reply.tool_calls:
        return no("no call came, though a tool was named")
    text = reply.tool_calls[0].arguments_json
    arguments = _arguments(text)
    if arguments is None or not _fits_rating(arguments):
        return partly(f"the arguments do not fit the schema: {_shortened(text)!r}", flags.STRUCTURED_OUTPUT)
    return yes(f"the arguments fit the schema: {_shortened(text)}")


def _fits_rating(arguments: Mapping[str, Any]) -> bool:
    stars = arguments.get("stars")
    return (
        arguments.keys() == {"stars", "kind"}
        and type(stars) is int
        and 1 <= stars <= 5
        and arguments["kind"] in ("delivery", "product", "service")
    )


async def tools_parallel(server: ModelServer) -> Finding:
    """Two look-ups are called for in one message."""
    said = f"Please look up both of my orders at once: {_ORDER} and ORD-400-318652."
    sound = _sound(await server.complete(_request(server, said)))
    if sound > 1:
        return yes(f"{sound} calls in one message")
    if sound == 1:
        return partly("one call at a time")
    return unknown("this model made no sound call when asked for two")


async def tool_results(server: ModelServer) -> Finding:
    """A conversation that holds a call and its result goes on."""
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": _LOOK_UP, "arguments": orjson.dumps({"order_id": _ORDER}).decode()},
    }
    turns: list[Json] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": '{"status": "delivered"}'},
    ]
    reply = await server.complete(_request(server, f"What is the status of order {_ORDER}?", turns=turns))
    if reply.text.strip() or reply.tool_calls:
        return yes(f"went on with a {'text' if reply.text.strip() else 'call'} after a tool's result")
    return partly("a tool's result is taken, and the model answered nothing")
