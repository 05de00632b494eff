"""The rehearsal server over real HTTP, and the command that serves it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from policysweep.commands.rehearsal import rehearsal
from policysweep.errors import InputError
from policysweep.models.rehearsal import DISPOSITIONS, FaultKind, RehearsalConfig, RehearsalServer

Json = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "declare_resolution", "parameters": {"type": "object"}}}]
MESSAGES: list[Json] = [
    {"role": "system", "content": "Rules. " * 400},
    {"role": "user", "content": "I want to return my lamp."},
]


def chat(messages: Sequence[Json] = MESSAGES, **fields: Any) -> Json:
    return {"model": "rehearsal-fair", "messages": list(messages), **fields}


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    client: aiohttp.ClientSession, server: RehearsalServer, data: Any, path: str = "/v1/chat/completions"
) -> Json:
    async with client.post(server.url + path, json=data) as response:
        body: Json = await response.json()
        return body | {"_status": response.status, "_headers": dict(response.headers)}


async def get(client: aiohttp.ClientSession, server: RehearsalServer, path: str) -> str:
    async with client.get(server.url + path) as response:
        assert response.status == 200
        return await response.text()


async def test_a_completion_is_marked_counted_and_the_same_again(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer() as server:
        first = await post(client, server, chat())
        again = await post(client, server, chat())
    assert first["system_fingerprint"].startswith("policysweep-rehearsal-")
    assert first["choices"] == again["choices"]
    assert first["id"] == again["id"]
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 600
    assert first["usage"]["completion_tokens"] > 0


async def test_models_health_and_tokenize(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer(RehearsalConfig(max_model_len=5000)) as server:
        models = json.loads(await get(client, server, "/v1/models"))["data"]
        await get(client, server, "/health")
        counted = await post(
            client, server, {"model": "rehearsal-fair", "messages": MESSAGES, "tools": TOOLS}, "/tokenize"
        )
        plain = await post(client, server, {"model": "rehearsal-fair", "prompt": "abcdefgh"}, "/tokenize")
        answer = await post(client, server, chat(tools=TOOLS))
        refused = await post(client, server, {"model": "rehearsal-fair"}, "/tokenize")
    assert [model["id"] for model in models] == list(DISPOSITIONS)
    assert {model["owned_by"] for model in models} == {"policysweep-rehearsal"}
    assert {model["max_model_len"] for model in models} == {5000}
    assert counted["count"] == len(counted["tokens"]) == answer["usage"]["prompt_tokens"]
    assert (plain["count"], plain["max_model_len"]) == (2, 5000)
    assert refused["_status"] == 400


async def test_metrics_have_vllms_names(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer() as server:
        answer = await post(client, server, chat())
        await post(client, server, chat(max_tokens=2))
        text = await get(client, server, "/metrics")

    def value(series: str, more: str = "") -> float:
        start = f'{series}{{engine="0",{more}model_name="rehearsal-fair"}} '
        return next(float(line.removeprefix(start)) for line in text.splitlines() if line.startswith(start))

    usage = answer["usage"]
    assert value("vllm:num_requests_running") == value("vllm:num_requests_waiting") == 0
    assert value("vllm:prompt_tokens_total") == 2 * usage["prompt_tokens"]
    assert value("vllm:generation_tokens_total") == usage["completion_tokens"] + 2
    assert value("vllm:prefix_cache_queries_total") == 2 * usage["prompt_tokens"]
    assert 0 < value("vllm:prefix_cache_hits_total") < usage["prompt_tokens"]
    assert (
        value("vllm:time_to_first_token_seconds_count")
        == value("vllm:e2e_request_latency_seconds_count")
        == 2
    )
    assert value("vllm:request_success_total", 'finished_reason="stop",') == 1
    assert value("vllm:request_success_total", 'finished_reason="length",') == 1


async def test_streaming_brings_the_same_text(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer(RehearsalConfig(per_token=0.0001)) as server:
        whole = await post(client, server, chat())
        data = chat(stream=True, stream_options={"include_usage": True})
        async with client.post(server.url + "/v1/chat/completions", json=data) as response:
            assert response.content_type == "text/event-stream"
            events = (await response.text()).split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


async def test_structured_output_with_logprobs(client: aiohttp.ClientSession) -> None:
    schema = {
        "type": "object",
        "required": ["score"],
        "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    async with RehearsalServer() as server:
        answer = await post(client, server, chat(response_format=wanted, logprobs=True, top_logprobs=5))
    choice = answer["choices"][0]
    score = json.loads(choice["message"]["content"])["score"]
    tokens = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in tokens) == choice["message"]["content"]
    (digit,) = [entry for entry in tokens if entry["token"] == str(score)]
    assert {other["token"] for other in digit["top_logprobs"]} == set("12345")


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (chat(model="gpt-7"), 404, "The model `gpt-7` does not exist."),
        (chat(messages=[]), 400, "`messages` is required"),
        ("not an object", 400, "must be a JSON object"),
        (
            chat([{"role": "user", "content": "x" * 4000}]),
            400,
            "maximum context length is 900 tokens. However, your request has 1002",
        ),
        (
            chat(max_tokens=800),
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 800. This model's maximum",
        ),
    ],
)
async def test_bad_requests_are_refused_in_openai_style(
    client: aiohttp.ClientSession, data: Any, status: int, words: str
) -> None:
    async with RehearsalServer(RehearsalConfig(max_model_len=900)) as server:
        answer = await post(client, server, data)
    assert answer["_status"] == answer["error"]["code"] == status
    assert words in answer["error"]["message"]


async def test_unknown_routes_and_methods(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer() as server:
        assert (await post(client, server, {}, "/v1/embeddings"))["_status"] == 404
        async with client.get(server.url + "/v1/chat/completions") as response:
            assert response.status == 405


async def fail(client: aiohttp.ClientSession, kind: str, **fields: Any) -> Json:
    """The answer of a server that always fails in this way."""
    async with RehearsalServer(RehearsalConfig(faults={kind: 1.0}, retry_after=7)) as server:
        return await post(client, server, chat(**fields))


@pytest.mark.parametrize(("kind", "retry_after"), [("http_429", "7"), ("http_503", "7"), ("http_500", None)])
async def test_status_faults(client: aiohttp.ClientSession, kind: str, retry_after: str | None) -> None:
    answer = await fail(client, kind)
    assert answer["_status"] == int(kind.removeprefix("http_"))
    assert answer["_headers"].get("Retry-After") == retry_after


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["reset", "reset_mid_body"])
async def test_lost_connections(client: aiohttp.ClientSession, kind: str, stream: bool) -> None:
    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError)):
        await fail(client, kind, stream=stream)


async def test_a_stall_never_answers_and_stopping_does_not_wait_for_it(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer(RehearsalConfig(faults={"stall": 1.0})) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await post(client, server, chat())
        stalled = asyncio.create_task(post(client, server, chat()))
        await asyncio.sleep(0.1)
        assert not stalled.done()
    with pytest.raises(aiohttp.ClientError):
        await stalled


@pytest.mark.parametrize("stream", [False, True])
async def test_truncated_json_is_half_a_body(client: aiohttp.ClientSession, stream: bool) -> None:
    async with (
        RehearsalServer(RehearsalConfig(faults={"truncated_json": 1.0})) as server,
        client.post(server.url + "/v1/chat/completions", json=chat(stream=stream)) as response,
    ):
        assert response.status == 200
        text = await response.text()
    assert "[DONE]" not in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text.rsplit("data: ", 1)[-1])


async def test_faults_of_the_model_arrive_in_good_order(client: aiohttp.ClientSession) -> None:
    choices = {
        kind: (await fail(client, kind, tools=TOOLS))["choices"][0]
        for kind in (
            "malformed_tool_call",
            "none_arguments",
            "empty_message",
            "length",
            "unknown_tool",
            "refusal",
            "content_filter",
        )
    }
    with pytest.raises(json.JSONDecodeError):
        json.loads(choices["malformed_tool_call"]["message"]["tool_calls"][0]["function"]["arguments"])
    assert choices["none_arguments"]["message"]["tool_calls"][0]["function"]["arguments"] is None
    assert choices["empty_message"]["message"]["content"] == ""
    assert choices["length"]["finish_reason"] == "length"
    assert choices["unknown_tool"]["message"]["tool_calls"][0]["function"]["name"] != "declare_resolution"
    assert choices["refusal"]["message"]["refusal"]
    assert choices["content_filter"]["finish_reason"] == "content_filter"


async def test_faults_are_set_at_run_time_and_a_retry_may_succeed(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer() as server:
        assert (await post(client, server, chat()))["_status"] == 200
        rates = await post(client, server, {"http_500": 0.5}, "/rehearsal/faults")
        assert rates["http_500"] == 0.5
        statuses = [(await post(client, server, chat()))["_status"] for _ in range(20)]
        assert set(statuses) == {200, 500}
        refused = await post(client, server, {"gremlins": 0.5}, "/rehearsal/faults")
        assert (refused["_status"], "unknown fault kind" in refused["error"]["message"]) == (400, True)
        assert json.loads(await get(client, server, "/rehearsal/faults")) == {"http_500": 0.5}
        await post(client, server, {}, "/rehearsal/faults")
        assert {(await post(client, server, chat()))["_status"] for _ in range(5)} == {200}


async def test_latency_is_taken_and_a_full_server_queues(client: aiohttp.ClientSession) -> None:
    config = RehearsalConfig(first_token=0.15, jitter=0.2, max_concurrency=1)
    async with RehearsalServer(config) as server:
        started = asyncio.get_running_loop().time()
        calls = [asyncio.create_task(post(client, server, chat(seed=seed))) for seed in range(3)]
        await asyncio.sleep(0.06)
        text = await get(client, server, "/metrics")
        await asyncio.gather(*calls)
        took = asyncio.get_running_loop().time() - started
    assert 'vllm:num_requests_running{engine="0",model_name="rehearsal-fair"} 1.0' in text
    assert 'vllm:num_requests_waiting{engine="0",model_name="rehearsal-fair"} 2.0' in text
    assert took >= 3 * 0.15 * 0.8


async def test_clients_that_leave_are_counted_and_free_their_slot(client: aiohttp.ClientSession) -> None:
    async with RehearsalServer(RehearsalConfig(first_token=30.0, max_concurrency=1)) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await post(client, server, chat())
        aborted = (
            'vllm:request_success_total{engine="0",finished_reason="abort",model_name="rehearsal-fair"} 1.0'
        )
        for _ in range(50):
            text = await get(client, server, "/metrics")
            if aborted in text:
                break
            await asyncio.sleep(0.02)
    assert aborted in text
    assert 'vllm:num_requests_running{engine="0",model_name="rehearsal-fair"} 0.0' in text


async def test_a_port_in_use_is_bad_input() -> None:
    async with RehearsalServer() as server:
        with pytest.raises(InputError, match=r"cannot listen on .*in use; choose another"):
            await RehearsalServer(RehearsalConfig(listen=server.address)).start()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fault", "gremlins=0.1"], "unknown fault kind 'gremlins'"),
        (["--fault", "stall"], "not KIND=RATE"),
        (["--fault", "stall=often"], "'often' is not a number"),
        (["--fault", "stall=0.1", "--fault", "stall=0.2"], "given twice"),
        (["--listen", "8100"], "is not HOST:PORT"),
        (["--jitter", "2"], "jitter is 2.0"),
        (["--first-token", "-1"], "first_token is -1.0"),
    ],
)
def test_the_command_refuses_bad_options(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(rehearsal, ["--listen", "127.0.0.1:0", *options])
    assert isinstance(result.exception, InputError)
    assert complaint in str(result.exception)


def test_every_fault_kind_is_in_the_help() -> None:
    text = "".join(CliRunner().invoke(rehearsal, ["--help"]).output.split())
    assert all(kind in text for kind in FaultKind)


_MAIN = "from policysweep.cli import main; main()"


def start(*options: str) -> tuple[subprocess.Popen[str], Json]:
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "rehearsal", "--listen", "127.0.0.1:0", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    announced: Json = json.loads(process.stdout.readline())
    return process, announced


@pytest.mark.parametrize("ending", ["stdin", "sigterm"])
async def test_the_command_announces_itself_and_ends_when_told(
    client: aiohttp.ClientSession, ending: str
) -> None:
    process, announced = start("--stop-on-stdin-eof")
    try:
        assert (announced["event"], announced["service"]) == ("listening", "rehearsal")
        async with client.get(f"http://{announced['address']}/health") as response:
            assert response.status == 200
        if ending == "stdin":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
