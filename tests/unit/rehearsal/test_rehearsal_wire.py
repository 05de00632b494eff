from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.models.rehearsal import tokens, wire
from policysweep.models.rehearsal.draft import Draft, ToolUse

from .support import request, tool, user

BOTH = Draft("One moment, please.", (ToolUse.of("a", {"x": "é" * 40}), ToolUse.of("b", {})))


def completion(draft: Draft, **fields: Any) -> wire.Completion:
    asked = request([user("hi")], tools=[tool("a"), tool("b")], **fields)
    return wire.Completion(asked, draft, tokens.PromptCount(12, 8), tokens.count_draft(draft))


def test_a_completion_has_the_openai_shape_and_the_mark() -> None:
    answer = wire.completion_document(completion(BOTH))
    assert answer["system_fingerprint"].startswith("policysweep-rehearsal-")
    assert answer["usage"]["prompt_tokens"] == 12
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 8}
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["a", "b"]
    assert len({call["id"] for call in choice["message"]["tool_calls"]}) == 2


def test_content_is_null_beside_calls_alone() -> None:
    answer = wire.completion_document(completion(Draft(tool_uses=BOTH.tool_uses)))
    assert answer["choices"][0]["message"]["content"] is None


def test_a_stream_brings_the_same_as_a_whole_answer() -> None:
    whole = completion(BOTH, stream=True, stream_options={"include_usage": True})
    raw = [event for event, _ in wire.stream_events(whole)]
    assert raw[-1] == b"data: [DONE]\n\n"
    chunks = [orjson.loads(event.removeprefix(b"data: ")) for event in raw[:-1]]
    assert all(chunk["system_fingerprint"] == wire.FINGERPRINT for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == BOTH.text
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    for index, use in enumerate(BOTH.tool_uses):
        mine = [call["function"]["arguments"] for call in calls if call["index"] == index]
        assert "".join(mine) == use.arguments
    assert chunks[-1]["usage"] == wire.completion_document(whole)["usage"]


def test_streamed_logprobs_come_token_by_token() -> None:
    chunks = [
        orjson.loads(event.removeprefix(b"data: "))
        for event, _ in wire.stream_events(
            completion(Draft("a 4"), stream=True, logprobs=True, top_logprobs=2)
        )
        if event != b"data: [DONE]\n\n"
    ]
    entries = [c["choices"][0]["logprobs"]["content"][0] for c in chunks if c["choices"][0]["logprobs"]]
    assert [entry["token"] for entry in entries] == ["a", " ", "4"]


@pytest.mark.parametrize("limit", [1, 3, 6])
def test_max_tokens_cuts_and_says_so(limit: int) -> None:
    cut = wire.limited(BOTH, limit)
    assert cut.finish == "length"
    assert tokens.count_draft(cut) <= limit + len(cut.tool_uses) + 1


def test_an_answer_that_fits_is_left_alone() -> None:
    assert wire.limited(BOTH, None) is BOTH
    assert wire.limited(BOTH, 500) is BOTH


def test_models_and_errors() -> None:
    (card,) = orjson.loads(wire.models_body(["m"], 4096))["data"]
    assert (card["id"], card["owned_by"], card["max_model_len"]) == ("m", "policysweep-rehearsal", 4096)
    assert orjson.loads(wire.error_body("no", 404, "model"))["error"] == {
        "message": "no",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }
