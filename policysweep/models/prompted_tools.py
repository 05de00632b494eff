"""Tool calling for models, or servers, that have none: the tools stand in the prompt, calls in the text; pure
but for the call itself.

    system     GUIDE, one tool a line, then the system message     equal for all calls of a sweep, so first
    assistant  text, then a block for each call
    user       what a person said; a block for each tool's result

A call is a block of three lines,

    ```tool_call
    {"name": "get_order_details", "arguments": {"order_id": "#W1"}}
    ```

read by the JSON parser, which knows where a value ends whatever its strings hold. A block that holds anything
else is a malformed call with its text kept verbatim: the model's fault, as with native calls. Each message is
rendered from itself and from those before it, so no call rewrites the prefix of the one before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import orjson

from policysweep.errors import InputError
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, Json
from policysweep.v1 import episode_pb2 as ep

ToolMode = Literal["native", "prompted"]
"""How a model is given its tools: by the server's own tool calling, or in the prompt."""

GUIDE = """\
## Tools

You have the tools that are listed below, one a line. To call one, write a block of exactly this form:

```tool_call
{"name": "NAME OF THE TOOL", "arguments": {"NAME OF A PARAMETER": "VALUE"}}
```

- `arguments` is one JSON object that fits the tool's `parameters`; `{}` when it needs none.
- One block is one call. A message may hold several.
- Text outside of the blocks is what you say to the person. Never put a call there.
- Results come in the next message, in blocks that begin with tool_result. Never write one yourself.
- Write a block only when you want the tool to be executed now.

"""
GUIDE_DIGEST = hashlib.sha256(GUIDE.encode()).hexdigest()
"""SHA-256 over what this mode adds to a prompt besides the tools themselves, hex."""

_OPENING = re.compile(r"```tool_call\b[ \t]*\r?\n?")
_CLOSING = re.compile(r"\s*(?:```|\Z)")
_NAME = re.compile(r'"name"\s*:\s*"([A-Za-z0-9_-]{1,64})"')
_BLOCK = re.compile(r"```(?=tool_(?:call|result)\b)")
_DECODER = json.JSONDecoder()


class PromptedTools:
    """`model`, with tools that its server knows nothing of. Implements ChatModel."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer as the model does. InputError when a call is demanded: text cannot be made to hold one."""
        if not request.tools:
            return await self._model.complete(request)
        if request.tool_choice not in (None, "auto"):
            raise InputError(f"tool_choice {request.tool_choice!r} needs tool_mode native")
        messages = prompted_messages(request.messages, request.tools)
        reply = await self._model.complete(replace(request, messages=messages, tools=(), tool_choice=None))
        return _read_reply(reply, len(request.messages))


def with_prompted_tools(model: ChatModel, tool_mode: ToolMode) -> ChatModel:
    """`model` as `tool_mode` wants it."""
    return PromptedTools(model) if tool_mode == "prompted" else model


def prompt_digest(digest: str, tool_mode: ToolMode) -> str:
    """The digest of a prompt that `tool_mode` may add to; `digest` itself for native tools."""
    if tool_mode == "native":
        return digest
    return hashlib.sha256(f"{digest}\0{GUIDE_DIGEST}".encode()).hexdigest()


# ------------------------------------------------------------------ to the model


def prompted_messages(messages: Sequence[Json], tools: Sequence[Json]) -> list[Json]:
    """OpenAI chat messages in which tools, calls and results are text, and neighbours of a role are one."""
    rendered: list[dict[str, Any]] = []
    for role, text in _turns(messages):
        if rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += f"\n\n{text}"
        else:
            rendered.append({"role": role, "content": text})
    guide = GUIDE + tool_lines(tools)
    if rendered and rendered[0]["role"] == "system":
        rendered[0]["content"] = f"{guide}\n\n{rendered[0]['content']}"
    else:
        rendered.insert(0, {"role": "system", "content": guide})
    return list(rendered)


def tool_lines(tools: Sequence[Json]) -> str:
    """The tools' functions as JSON, one a line."""
    return "\n".join(orjson.dumps(tool["function"]).decode() for tool in tools)


def _turns(messages: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """Role and text of each message."""
    names: dict[str, str] = {}
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        if role == "assistant":
            calls = [call["function"] | {"id": call["id"]} for call in message.get("tool_calls") or ()]
            names |= {call["id"]: call["name"] for call in calls}
            blocks = [call_block(call["name"], call["arguments"]) for call in calls]
            yield role, "\n\n".join([content, *blocks] if content else blocks)
        elif role == "tool":
            yield "user", result_block(names.get(message["tool_call_id"], ""), content)
        else:
            yield role, _defused(content)


def call_block(name: str, arguments_json: str) -> str:
    """A call as the model writes it. A malformed one is the text that `read_calls` kept of it."""
    if not _is_json(arguments_json):
        return block(arguments_json)
    return block(f'{{"name": {json.dumps(name)}, "arguments": {arguments_json}}}')


def block(content: str) -> str:
    """The fences of a call around its content."""
    return f"```tool_call\n{content}\n```"


def result_block(name: str, content: str) -> str:
    """A tool's result."""
    return f"```tool_result {name}\n{_defused(content)}\n```"


def _defused(text: str) -> str:
    """`text` of somebody else, in which no block of ours begins: a customer cannot forge a tool's result."""
    return _BLOCK.sub("``` ", text)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


# ---------------------------------------------------------------- from the model


def _read_reply(reply: ChatReply, turn: int) -> ChatReply:
    """The reply with its blocks as calls. Ids are unique in a conversation, which grows by every message."""
    text, found = read_calls(reply.text)
    calls = [
        ep.ToolCall(id=f"call_{turn}_{index}", name=name, arguments_json=arguments)
        for index, (name, arguments) in enumerate(found)
    ]
    reason = reply.finish_reason
    if calls and reason == ep.FINISH_REASON_STOP:
        reason = ep.FINISH_REASON_TOOL_CALLS
    return replace(reply, text=text, tool_calls=[*reply.tool_calls, *calls], finish_reason=reason)


def read_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What is said outside of the blocks, and name and arguments of the call in each.

    The name of a malformed call is "" where none can be told, and its arguments are the block's text.
    """
    said: list[str] = []
    calls: list[tuple[str, str]] = []
    at = 0
    while opening := _OPENING.search(text, at):
        said.append(text[at : opening.start()].strip())
        call, at = _read_block(text, opening.end())
        calls.append(call)
    if not calls:
        return text, calls
    said.append(text[at:].strip())
    return "\n\n".join(filter(None, said)), calls


def _read_block(text: str, start: int) -> tuple[tuple[str, str], int]:
    """The call of the block whose content begins at `start`, and where the text goes on."""
    start += len(text[start:]) - len(text[start:].lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        value, end = None, start
    closing = _CLOSING.match(text, end)
    if closing is not None and end > start and (call := _well_formed(value)) is not None:
        return call, closing.end()
    end = text.find("```", start)
    body = text[start : end if end >= 0 else len(text)].strip()
    name = _NAME.search(body)
    return (name[1] if name else "", body), end + 3 if end >= 0 else len(text)


def _well_formed(value: object) -> tuple[str, str] | None:
    """Name and arguments of a call. Arguments written as text, as the wire format has them, stay that text.

    Arguments that are no object are passed on: whoever executes the call says what is wrong with them.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments")
    if arguments is None:
        return value["name"], "{}"
    if isinstance(arguments, str) and _is_json(arguments):
        return value["name"], arguments
    return value["name"], json.dumps(arguments, ensure_ascii=False)
