"""A chat completion request, read once and checked where the scripts rely on it.

The body is parsed with one orjson call and then only looked at: messages and tools stay the parsed objects.
What an OpenAI-compatible server ignores (unknown parameters) is ignored; what the rehearsal model cannot
honour (several choices) or what no server could make sense of is refused with the path of the field.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

Json = dict[str, Any]

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_ANY_OBJECT: Json = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}


class ApiError(Exception):
    """A request that is refused: becomes an OpenAI-style error body with `status`."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A valid request.

    `functions` maps each offered tool's name to its function object. `tool_choice` is none, auto or
    required; `forced_tool` is set when the request names one. `digest` is a hash of the body: equal bodies
    have equal digests in every process. `trial` is empty unless the request asks for sampling with a seed;
    then it separates the trials of one conversation.
    """

    model: str
    messages: list[Json]
    tools: list[Json]
    functions: dict[str, Json]
    tool_choice: str
    forced_tool: str | None
    parallel_tool_calls: bool
    schema: Json | None
    schema_name: str
    stream: bool
    include_usage: bool
    top_logprobs: int | None
    max_tokens: int | None
    trial: str
    digest: str

    def system_text(self) -> str:
        """The text of the first system message; "" when there is none."""
        first = self.messages[0]
        return text_of(first) if first["role"] in ("system", "developer") else ""

    def conversation_key(self) -> str:
        """What a text may depend on: model, conversation and trial, and nothing about how it is delivered."""
        said = "\x1e".join(map(text_of, self.messages))
        return hashlib.sha256(f"{self.model}\x1e{self.trial}\x1e{said}".encode()).hexdigest()

    def whole_text(self) -> str:
        """The text of all messages."""
        return "\n".join(map(text_of, self.messages))

    def last_text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1])


def text_of(message: Json) -> str:
    """The text of a message, whether it is a string or a list of text parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not content:
        return ""
    return "".join(part["text"] for part in content)


def parse(body: bytes) -> ParsedRequest:
    """Read a request body. Raises ApiError (400) naming the field that is wrong."""
    data = _load(body)
    tools = read_tools(data)
    choice, forced = _tool_choice(data, functions := _functions(tools))
    schema, schema_name = _response_format(data)
    _single_choice(data)
    stream_options = data.get("stream_options") or {}
    return ParsedRequest(
        model=_model(data),
        messages=read_messages(data),
        tools=tools,
        functions=functions,
        tool_choice=choice,
        forced_tool=forced,
        parallel_tool_calls=data.get("parallel_tool_calls") is not False,
        schema=schema,
        schema_name=schema_name,
        stream=bool(data.get("stream")),
        include_usage=isinstance(stream_options, dict) and bool(stream_options.get("include_usage")),
        top_logprobs=_top_logprobs(data),
        max_tokens=_max_tokens(data),
        trial=_trial(data),
        digest=hashlib.sha256(body).hexdigest()[:32],
    )


def _load(body: bytes) -> Json:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(f"The body is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ApiError("The body must be a JSON object.")
    return data


def read_tools(data: Json) -> list[Json]:
    """The tools of a body; [] when it offers none. Raises ApiError (400)."""
    return _list(data, "tools")


def _list(data: Json, key: str) -> list[Json]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ApiError(f"`{key}` must be a list of objects.", param=key)
    return value


def _model(data: Json) -> str:
    model = data.get("model")
    if not isinstance(model, str) or not model:
        raise ApiError("`model` is required and must be a string.", param="model")
    return model


def read_messages(data: Json) -> list[Json]:
    """The chat messages of a body. Raises ApiError (400) naming the place."""
    messages = _list(data, "messages")
    if not messages:
        raise ApiError("`messages` is required and must not be empty.", param="messages")
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            raise ApiError(
                f"`messages[{index}].role` is {role!r}; use one of {sorted(_ROLES)}.", param="messages"
            )
        content = message.get("content")
        if content.__class__ is not str:
            _check_content(content, index)
        if role == "tool" and not isinstance(message.get("tool_call_id"), str):
            raise ApiError(
                f"`messages[{index}].tool_call_id` is required in a tool message.", param="messages"
            )
        if message.get("tool_calls"):
            _check_calls(message["tool_calls"], index)
    return messages


def _check_content(content: object, index: int) -> None:
    if content is None or isinstance(content, str):
        return
    parts = content if isinstance(content, list) else [None]
    if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        raise ApiError(f"`messages[{index}].content` must be text, text parts or null.", param="messages")


def _check_calls(calls: object, index: int) -> None:
    ok = isinstance(calls, list) and all(
        isinstance(call, dict)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
        for call in calls
    )
    if not ok:
        raise ApiError(
            f"`messages[{index}].tool_calls` must be a list of objects with `function.name`.",
            param="messages",
        )


def _functions(tools: list[Json]) -> dict[str, Json]:
    functions: dict[str, Json] = {}
    for index, tool in enumerate(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not name:
            raise ApiError(f"`tools[{index}].function.name` is required.", param="tools")
        if not isinstance(tool["function"].get("parameters") or {}, dict):
            raise ApiError(f"`tools[{index}].function.parameters` must be an object.", param="tools")
        functions[name] = tool["function"]
    return functions


def _tool_choice(data: Json, functions: dict[str, Json]) -> tuple[str, str | None]:
    choice = data.get("tool_choice")
    if choice is None:
        return "auto", None
    if choice in ("none", "auto", "required"):
        return str(choice), None
    name = choice["function"].get("name") if _has_function(choice) else None
    if name not in functions:
        raise ApiError(
            "`tool_choice` must be none, auto, required or name an offered tool.", param="tool_choice"
        )
    return "required", str(name)


def _has_function(choice: object) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("function"), dict)


def _response_format(data: Json) -> tuple[Json | None, str]:
    asked = data.get("response_format")
    if asked is None:
        return None, ""
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind == "text":
        return None, ""
    if kind == "json_object":
        return _ANY_OBJECT, ""
    wrapper = asked.get("json_schema") if kind == "json_schema" else None
    if not isinstance(wrapper, dict) or not isinstance(wrapper.get("schema"), dict):
        raise ApiError(
            "`response_format` must be text, json_object or json_schema with `json_schema.schema`.",
            param="response_format",
        )
    return wrapper["schema"], str(wrapper.get("name", ""))


def _single_choice(data: Json) -> None:
    if data.get("n") not in (None, 1):
        raise ApiError("`n` must be 1: the rehearsal model writes one choice.", param="n")


def _top_logprobs(data: Json) -> int | None:
    if not data.get("logprobs"):
        return None
    top = data.get("top_logprobs") or 0
    if not isinstance(top, int) or not 0 <= top <= 20:
        raise ApiError("`top_logprobs` must be an integer from 0 to 20.", param="top_logprobs")
    return top


def _max_tokens(data: Json) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        limit = data.get(key)
        if limit is None:
            continue
        if not isinstance(limit, int) or limit < 1:
            raise ApiError(f"`{key}` must be at least 1.", param=key)
        return limit
    return None


def _trial(data: Json) -> str:
    temperature, seed = data.get("temperature"), data.get("seed")
    for key, value in (("temperature", temperature), ("seed", seed)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ApiError(f"`{key}` must be a number.", param=key)
    return "" if seed is None or temperature == 0 else str(seed)
