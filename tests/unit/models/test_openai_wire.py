"""The wire format: every shape of answer that servers are known to send, and what we send them."""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from policysweep.errors import ContextOverflow, ModelServerGarbled, ModelServerUnavailable
from policysweep.models.chat import ChatReply, ChatRequest, Json, ResponseSchema
from policysweep.models.wire import parse_reply, request_body
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep

ASKED = ChatRequest(messages=[{"role": "user", "content": "hello"}])


def parse(body: bytes, request: ChatRequest = ASKED) -> ChatReply:
    return parse_reply(body, request, latency_seconds=0.5, where="model server http://m/v1")


def completion(message: object, **rest: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": rest.pop("finish_reason", "stop")}
    if "logprobs" in rest:
        choice["logprobs"] = rest.pop("logprobs")
    return orjson.dumps({"id": "c", "object": "chat.completion", "choices": [choice], **rest})


def calls(*functions: object, ids: tuple[object, ...] = ()) -> list[Json]:
    identifiers = ids or tuple(f"id{index}" for index in range(len(functions)))
    return [
        {"type": "function", "function": function, "id": identifier}
        for function, identifier in zip(functions, identifiers, strict=True)
    ]


def assistant(name: str, arguments: str) -> Json:
    call = {"id": "i", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


class TestRequestBody:
    def body(self, **fields: Any) -> Any:
        return orjson.loads(request_body("m", ChatRequest(messages=ASKED.messages, **fields)))

    def test_says_temperature_zero_and_leaves_out_what_is_unset(self) -> None:
        assert self.body() == {
            "model": "m",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": False,
            "temperature": 0.0,
        }

    def test_carries_sampling_and_seed_zero(self) -> None:
        body = self.body(sampling=agent_pb2.Sampling(temperature=0.7, top_p=0.9, max_tokens=64), seed=0)
        assert (body["temperature"], body["top_p"], body["max_tokens"], body["seed"]) == (0.7, 0.9, 64, 0)

    def test_serialised_tools_are_spliced_in(self) -> None:
        tool = cast(Json, orjson.Fragment(b'{"type":"function","function":{"name":"f"}}'))
        assert self.body(tools=(tool,), tool_choice="required")["tools"] == [
            {"type": "function", "function": {"name": "f"}}
        ]

    def test_a_malformed_call_of_the_history_does_not_break_the_request(self) -> None:
        """vLLM and llama.cpp refuse a history whose arguments are not a JSON object."""
        written = ['{"a": 1}', '{"a": "half', "", "[1]", '"text"', "null"]
        history = [assistant("f", arguments) for arguments in written]
        sent = orjson.loads(request_body("m", ChatRequest(messages=history)))["messages"]
        arguments = [message["tool_calls"][0]["function"]["arguments"] for message in sent]
        assert arguments[0] == '{"a": 1}'
        assert [orjson.loads(text) for text in arguments[1:]] == [
            {"unparsed_arguments": text} for text in written[1:]
        ]

    def test_a_call_of_a_name_that_is_none_keeps_a_readable_one(self) -> None:
        history = [assistant(name, "{}") for name in ("get_order", "functions.get order", "", "x" * 80)]
        sent = orjson.loads(request_body("m", ChatRequest(messages=history)))["messages"]
        names = [message["tool_calls"][0]["function"]["name"] for message in sent]
        assert names == ["get_order", "functions_get_order", "unnamed", "x" * 64]

    def test_the_callers_messages_are_left_as_they_are(self) -> None:
        history = [assistant("f", "{"), {"role": "tool", "content": "no", "tool_call_id": "i"}]
        before = orjson.dumps(history)
        request_body("m", ChatRequest(messages=history))
        assert orjson.dumps(history) == before

    def test_tool_choice_without_tools_is_left_out(self) -> None:
        assert "tool_choice" not in self.body(tool_choice="auto")

    def test_asks_for_schema_and_logprobs(self) -> None:
        body = self.body(response_schema=ResponseSchema("verdict", {"type": "object"}), top_logprobs=5)
        assert body["response_format"]["json_schema"] == {
            "name": "verdict",
            "schema": {"type": "object"},
            "strict": True,
        }
        assert (body["logprobs"], body["top_logprobs"]) == (True, 5)


class TestText:
    @pytest.mark.parametrize(
        ("message", "text"),
        [
            ({"content": "hi"}, "hi"),
            ({"content": None}, ""),
            ({"content": ""}, ""),
            ({}, ""),
            ({"content": None, "refusal": "I cannot."}, "I cannot."),
            ({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, "b"]}, "ab"),
            ({"content": "hi", "reasoning_content": "secret thoughts"}, "hi"),
            ({"content": "hi", "reasoning_content": None}, "hi"),
            ({"content": "line\u2028separator \x00 \U0001f600"}, "line\u2028separator \x00 \U0001f600"),
        ],
    )
    def test_shapes_of_content(self, message: Json, text: str) -> None:
        assert parse(completion(message)).text == text

    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    @pytest.mark.parametrize(
        ("reasoning", "schema", "text"),
        [
            ('{"score": 3}', True, '{"score": 3}'),
            ('{"score": 3}', False, ""),
            ("The score is 3.", True, ""),
            ('{"score": ', True, ""),
            ({"score": 3}, True, ""),
        ],
    )
    def test_a_structured_answer_in_the_place_of_reasoning_is_found_and_reasoning_is_not_told(
        self, field: str, reasoning: object, schema: bool, text: str
    ) -> None:
        asked = ResponseSchema("verdict", {"type": "object"}) if schema else None
        body = completion({"content": None, field: reasoning})
        assert parse(body, ChatRequest(messages=[], response_schema=asked)).text == text

    def test_half_a_surrogate_pair_is_replaced_not_fatal(self) -> None:
        body = b'{"choices":[{"message":{"content":"ok \\ud83d"},"finish_reason":"stop"}]}'
        assert parse(body).text == "ok ?"


class TestToolCalls:
    @pytest.mark.parametrize("absent", [None, []])
    def test_none_and_empty_mean_no_calls(self, absent: object) -> None:
        assert list(parse(completion({"content": "x", "tool_calls": absent})).tool_calls) == []

    @pytest.mark.parametrize(
        ("arguments", "verbatim"),
        [
            ('{"a": "}{"}', '{"a": "}{"}'),
            ('{"a": ', '{"a": '),
            ("", ""),
            (None, "{}"),
            ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
            ([1], "[1]"),
        ],
    )
    def test_arguments_stay_as_written(self, arguments: object, verbatim: str) -> None:
        reply = parse(completion({"tool_calls": calls({"name": "f", "arguments": arguments})}))
        assert [call.arguments_json for call in reply.tool_calls] == [verbatim]

    def test_legacy_function_call(self) -> None:
        message = {"content": None, "function_call": {"name": "f", "arguments": "{}"}}
        reply = parse(completion(message, finish_reason="function_call"))
        assert [(call.id, call.name) for call in reply.tool_calls] == [("call_1_0", "f")]
        assert reply.finish_reason == ep.FINISH_REASON_TOOL_CALLS

    def test_missing_and_repeated_ids_are_filled_the_same_way_each_time(self) -> None:
        function = {"name": "f", "arguments": "{}"}
        body = completion({"tool_calls": calls(*[function] * 5, ids=(None, "a", "a", "", 7))})
        first, second = parse(body), parse(body)
        identifiers = [call.id for call in first.tool_calls]
        assert identifiers == ["call_1_0", "a", "call_1_2", "call_1_3", "7"]
        assert [call.id for call in second.tool_calls] == identifiers

    def test_an_id_of_an_earlier_turn_is_replaced(self) -> None:
        history: list[Json] = [
            {"role": "assistant", "tool_calls": [{"id": "0"}]},
            {"role": "tool", "content": ""},
        ]
        body = completion({"tool_calls": calls({"name": "f"}, ids=("0",))})
        assert parse(body, ChatRequest(messages=history)).tool_calls[0].id == "call_2_0"

    def test_a_call_without_a_name_is_the_models_mistake(self) -> None:
        assert parse(completion({"tool_calls": calls({"arguments": "{}"})})).tool_calls[0].name == ""

    @pytest.mark.parametrize("broken", ["text", [3], [{"id": "x"}], [{"function": {"name": 3}}], {"a": 1}])
    def test_what_is_no_list_of_calls_is_garbled(self, broken: object) -> None:
        with pytest.raises(ModelServerGarbled, match="tool"):
            parse(completion({"content": "x", "tool_calls": broken}))


class TestFinishReason:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("stop", ep.FINISH_REASON_STOP),
            ("tool_calls", ep.FINISH_REASON_TOOL_CALLS),
            ("length", ep.FINISH_REASON_LENGTH),
            ("content_filter", ep.FINISH_REASON_CONTENT_FILTER),
            ("eos_token", ep.FINISH_REASON_UNSPECIFIED),
            (None, ep.FINISH_REASON_UNSPECIFIED),
            ({"type": "stop"}, ep.FINISH_REASON_UNSPECIFIED),
        ],
    )
    def test_known_and_unknown(self, written: object, meant: int) -> None:
        assert parse(completion({"content": "x"}, finish_reason=written)).finish_reason == meant

    @pytest.mark.parametrize("cut", ["abort", "error"])
    def test_an_answer_that_the_server_cut_is_no_answer(self, cut: str) -> None:
        with pytest.raises(ModelServerUnavailable, match=cut):
            parse(completion({"content": "I thi"}, finish_reason=cut))


class TestUsage:
    def test_reported(self) -> None:
        usage = parse(
            completion(
                {"content": "x"},
                usage={
                    "prompt_tokens": 10,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 0},
                },
            )
        ).usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens) == (10, 2, 0)
        assert usage.HasField("cached_prompt_tokens")
        assert (usage.latency_seconds, usage.model_calls) == (0.5, 1)

    @pytest.mark.parametrize(
        "reported",
        [
            None,
            {},
            {"prompt_tokens": None, "prompt_tokens_details": None},
            {
                "prompt_tokens": "12",
                "completion_tokens": -1,
                "prompt_tokens_details": {"cached_tokens": True},
            },
            {"prompt_tokens": 2**40},
            [],
        ],
    )
    def test_unreported_is_absent_and_never_zero(self, reported: object) -> None:
        usage = parse(completion({"content": "x"}, usage=reported)).usage
        for field in ("prompt_tokens", "completion_tokens", "cached_prompt_tokens"):
            assert not usage.HasField(cast(Any, field))


ENTRY: Json = {
    "token": "4",
    "logprob": -0.1,
    "top_logprobs": [{"token": "5", "logprob": -2.5}, {"token": "4", "logprob": -0.1}],
}


class TestLogprobs:
    def parse(self, logprobs: object, top: int = 2) -> ChatReply:
        request = ChatRequest(messages=[], top_logprobs=top)
        return parse(completion({"content": "4"}, logprobs=logprobs), request)

    def test_alternatives_by_token(self) -> None:
        (token,) = self.parse({"content": [ENTRY]}).logprobs
        assert (token.token, dict(token.alternatives)) == ("4", {"5": -2.5, "4": -0.1})

    def test_the_written_token_is_among_the_alternatives(self) -> None:
        (token,) = self.parse({"content": [{"token": "4", "logprob": -3, "top_logprobs": None}]}).logprobs
        assert dict(token.alternatives) == {"4": -3.0}

    @pytest.mark.parametrize("absent", [None, {}, {"content": None}])
    def test_absent(self, absent: object) -> None:
        assert list(self.parse(absent).logprobs) == []

    def test_not_read_unless_asked_for(self) -> None:
        assert list(self.parse({"content": "rubbish"}, top=0).logprobs) == []

    def test_another_format_is_garbled(self) -> None:
        with pytest.raises(ModelServerGarbled, match="logprobs"):
            self.parse({"content": [{"token": "4"}]})

    def test_not_a_number_is_read(self) -> None:
        body = completion({"content": "4"}, logprobs={"content": [ENTRY]}).replace(b"-2.5", b"-Infinity")
        (token,) = parse(body, ChatRequest(messages=[], top_logprobs=2)).logprobs
        assert token.alternatives["5"] == float("-inf")


class TestRehearsal:
    @pytest.mark.parametrize(
        ("fingerprint", "rehearsal"),
        [("policysweep-rehearsal-1", True), ("fp_44709d6fcb", False), (None, False), (3, False)],
    )
    def test_told_by_the_fingerprint(self, fingerprint: object, rehearsal: bool) -> None:
        assert parse(completion({"content": "x"}, system_fingerprint=fingerprint)).rehearsal is rehearsal


class TestGarbled:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>502</html>",
            completion({"content": "x"})[:-20],
            b"[]",
            b"null",
            b"{}",
            b'{"choices": []}',
            b'{"choices": {}}',
            b'{"choices": [1]}',
            b'{"choices": [{}]}',
            b'{"choices": [{"message": null}]}',
            b'{"choices": [{"message": {"content": 7}}]}',
            b"\xff\xfe",
            b"[" * 100_000,
        ],
    )
    def test_not_a_chat_completion(self, body: bytes) -> None:
        with pytest.raises(ModelServerGarbled, match=r"http://m/v1 did not answer with a chat completion"):
            parse(body)

    def test_an_error_sent_as_a_success_keeps_its_words(self) -> None:
        with pytest.raises(ModelServerGarbled, match="CUDA out of memory"):
            parse(b'{"error": {"message": "CUDA out of memory", "code": 500}}')

    def test_an_overflow_sent_as_a_success_is_an_overflow(self) -> None:
        body = (
            b'{"error":{"code":400,"message":"the request exceeds the available context size",'
            b'"type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}'
        )
        with pytest.raises(ContextOverflow, match="available context size"):
            parse(body)
