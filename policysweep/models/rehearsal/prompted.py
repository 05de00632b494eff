"""Plays a model without tool calling: reads tools, calls and results from text, and writes calls into it.

The inverse of `policysweep.models.prompted_tools`, whose format it takes from there. What the scripts see is
the request that a model with tool calling would have got, so both kinds decide the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import orjson

from policysweep.models.prompted_tools import GUIDE, block, read_calls
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.request import Json, ParsedRequest, text_of

_RESULT = re.compile(r"```tool_result [^\n]*\n(.*?)\n```(?:\n\n|\Z)", re.DOTALL)


def native_request(request: ParsedRequest) -> ParsedRequest | None:
    """`request` as it would be with tool calling; None when its prompt holds no tools."""
    system = request.system_text()
    if request.tools or not system.startswith(GUIDE):
        return None
    lines, _, rest = system.removeprefix(GUIDE).partition("\n\n")
    tools: list[Json] = [{"type": "function", "function": orjson.loads(line)} for line in lines.splitlines()]
    messages = [{"role": "system", "content": rest}] if rest else []
    return replace(
        request,
        messages=[*messages, *_native_messages(request.messages[1:])],
        tools=tools,
        functions={tool["function"]["name"]: tool["function"] for tool in tools},
    )


def _native_messages(messages: list[Json]) -> Iterator[Json]:
    called: list[str] = []
    for index, message in enumerate(messages):
        text = text_of(message)
        if message["role"] == "assistant":
            said, calls = read_calls(text)
            called = [f"call_{index}_{position}" for position in range(len(calls))]
            yield {"role": "assistant", "content": said, **_calls(called, calls)}
        else:
            yield from _results_and_words(text, called)


def _calls(ids: list[str], calls: list[tuple[str, str]]) -> Mapping[str, list[Json]]:
    made: list[Json] = [
        {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}
        for identifier, (name, arguments) in zip(ids, calls, strict=True)
    ]
    return {"tool_calls": made} if made else {}


def _results_and_words(text: str, called: list[str]) -> Iterator[Json]:
    """The results of the calls before, in their order, and what a person said after them."""
    at = 0
    for identifier in called:
        block = _RESULT.match(text, at)
        if block is None:
            break
        yield {"role": "tool", "tool_call_id": identifier, "content": block[1]}
        at = block.end()
    if words := text[at:]:
        yield {"role": "user", "content": words}


def written(draft: Draft) -> Draft:
    """`draft` with its calls in the text."""
    # Broken arguments are written as they are, which breaks the block.
    blocks = [
        block(f'{{"name": "{use.name}", "arguments": {use.arguments or "null"}}}') for use in draft.tool_uses
    ]
    return replace(draft, text="\n\n".join(filter(None, [draft.text, *blocks])), tool_uses=())
