"""Tool definitions of the contract as OpenAI function tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from policysweep.v1 import episode_pb2


def openai_tool(tool: episode_pb2.ToolDefinition) -> Mapping[str, Any]:
    """One function tool. The schema stays the text that it is: orjson copies it into the request body."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": orjson.Fragment(tool.parameters_json),
        },
    }


def openai_tools(tools: Iterable[episode_pb2.ToolDefinition]) -> tuple[Mapping[str, Any], ...]:
    """Function tools in the order given."""
    return tuple(openai_tool(tool) for tool in tools)


def openai_tool_calls(calls: Iterable[episode_pb2.ToolCall]) -> list[Mapping[str, Any]]:
    """Tool calls of an assistant message, arguments verbatim."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_json},
        }
        for call in calls
    ]
