from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.models.rehearsal.request import ApiError, parse

from .support import body, request, system, tool, user


def test_reads_what_the_scripts_need() -> None:
    parsed = request(
        [system("rules"), user("hello")],
        tools=[tool("one")],
        tool_choice={"type": "function", "function": {"name": "one"}},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": {"type": "object"}},
        },
        max_tokens=30,
        logprobs=True,
        top_logprobs=5,
        stream=True,
        stream_options={"include_usage": True},
    )
    assert (parsed.system_text(), parsed.last_text()) == ("rules", "hello")
    assert (parsed.tool_choice, parsed.forced_tool) == ("required", "one")
    assert (parsed.schema_name, parsed.schema) == ("verdict", {"type": "object"})
    assert (parsed.max_tokens, parsed.top_logprobs) == (30, 5)
    assert (parsed.stream, parsed.include_usage) == (True, True)


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    assert request([{"role": "user", "content": parts}]).last_text() == "one two"


@pytest.mark.parametrize(("temperature", "expected"), [(0, ""), (0.7, "5"), (None, "5")])
def test_a_seed_counts_only_when_sampling(temperature: float | None, expected: str) -> None:
    fields: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    assert request([user("hi")], seed=5, **fields).trial == expected


def test_equal_bodies_have_equal_digests() -> None:
    first, second = body([user("a")]), body([user("b")])
    assert parse(first).digest == parse(first).digest != parse(second).digest


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"messages": []}, "`messages` is required"),
        ({"messages": "hello"}, "`messages` must be a list of objects"),
        ({"messages": [{"role": "wizard", "content": ""}]}, "`messages[0].role` is 'wizard'"),
        ({"messages": [{"role": "user", "content": 7}]}, "`messages[0].content` must be text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            "`messages[0].content` must be text",
        ),
        ({"messages": [{"role": "tool", "content": ""}]}, "`messages[0].tool_call_id` is required"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "`messages[0].tool_calls`"),
        ({"model": ""}, "`model` is required"),
        ({"tools": [{"type": "function"}]}, "`tools[0].function.name` is required"),
        ({"tools": [{"function": {"name": "a", "parameters": ["x"]}}]}, "`tools[0].function.parameters`"),
        ({"tool_choice": "maybe"}, "`tool_choice` must be"),
        ({"tool_choice": {"type": "function", "function": {"name": "absent"}}}, "`tool_choice` must be"),
        ({"response_format": {"type": "json_schema"}}, "`response_format` must be"),
        ({"response_format": "json"}, "`response_format` must be"),
        ({"n": 2}, "`n` must be 1"),
        ({"logprobs": True, "top_logprobs": 21}, "`top_logprobs` must be"),
        ({"max_tokens": 0}, "`max_tokens` must be at least 1"),
        ({"temperature": "warm"}, "`temperature` must be a number"),
        ({"seed": "x"}, "`seed` must be a number"),
    ],
)
def test_refuses_with_the_field(fields: dict[str, Any], complaint: str) -> None:
    data = {"model": "rehearsal-fair", "messages": [user("hi")], **fields}
    with pytest.raises(ApiError) as caught:
        parse(orjson.dumps(data))
    assert complaint in str(caught.value)
    assert caught.value.status == 400
    assert str(caught.value.param) in str(caught.value)


@pytest.mark.parametrize("raw", [b"{", b"[]", b"", b'"text"', b"\xff"])
def test_refuses_what_is_no_object(raw: bytes) -> None:
    with pytest.raises(ApiError, match="The body"):
        parse(raw)
