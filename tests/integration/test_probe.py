"""`policysweep probe` against servers that can do much, little and nothing. Models are rehearsal models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from policysweep.commands.probe import probe
from policysweep.errors import InputError
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.probe.finding import Verdict
from policysweep.probe.run import Prober, ProbeResult
from policysweep.probe.server import ModelServer
from policysweep.probe.usability import tool_mode
from policysweep.sweep.spec import load_spec

pytestmark = pytest.mark.timeout(60)
MODEL = "rehearsal-fair"
KEY = "sk-very-secret"


async def probed(
    url: str, *, seconds: float = 20, measures: bool = False, key: str | None = None
) -> ProbeResult:
    async with ModelServer(url, MODEL, key) as server:
        return await Prober(server, seconds, measures=measures, tell=lambda *_: None).run()


def verdicts(result: ProbeResult) -> dict[str, str]:
    return {name: str(finding.verdict) for name, finding in result.findings.items()}


async def command(*arguments: str, **environment: str) -> Result:
    """The command in a thread: it has a loop of its own, and servers of this test answer it."""
    runner = CliRunner(env=environment)
    return await asyncio.to_thread(runner.invoke, probe, arguments)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    """A server that answers everything in one way."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    app_runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await app_runner.setup()
    try:
        await web.TCPSite(app_runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{app_runner.addresses[0][1]}"
    finally:
        await app_runner.cleanup()


class TestFindings:
    async def test_a_server_that_can_everything(self) -> None:
        async with RehearsalServer() as server:
            result = await probed(server.url, measures=True)
        found = verdicts(result)
        # The script looks up one order at a time.
        assert {name for name, verdict in found.items() if verdict != "yes"} == {"tools parallel"}
        assert result.rehearsal
        assert result.ramp is not None
        assert result.ramp.recommended
        assert result.findings["context length"].data["max_model_len"] == 32_768

    async def test_a_server_without_tool_calling(self) -> None:
        async with RehearsalServer(RehearsalConfig(tool_calling=False)) as server:
            result = await probed(server.url)
        assert verdicts(result)["tools auto"] == "no"
        for capability in ("tools auto", "tools required", "tools strict", "tools parallel", "tool results"):
            assert "--enable-auto-tool-choice" in result.findings[capability].mend
        assert verdicts(result)["tools prompted"] == "yes"
        assert tool_mode(result) == "prompted"

    async def test_a_short_context(self) -> None:
        async with RehearsalServer(RehearsalConfig(max_model_len=10_000)) as server:
            finding = (await probed(server.url)).findings["context length"]
        assert (finding.verdict, finding.data["max_model_len"]) == (Verdict.PARTLY, 10_000)
        assert "--max-model-len" in finding.mend

    @pytest.mark.parametrize(
        ("fault", "capability", "verdict", "says"),
        [
            ("think_tags", "thoughts apart", Verdict.NO, "thoughts stand in the text"),
            ("reasoning_content", "thoughts apart", Verdict.YES, "thoughts come in reasoning_content"),
            ("reasoning", "thoughts apart", Verdict.YES, "thoughts come in reasoning,"),
            ("misplaced_answer", "chat", Verdict.NO, "the answer was empty"),
            ("malformed_tool_call", "tools auto", Verdict.PARTLY, "malformed"),
            ("none_arguments", "tools strict", Verdict.PARTLY, "do not fit the schema"),
            ("parallel_calls", "tools parallel", Verdict.YES, "calls in one message"),
            ("prose", "json schema", Verdict.NO, "0 of 3"),
            ("no_usage", "usage", Verdict.NO, "do not say"),
            ("null_usage_details", "prefix cache", Verdict.PARTLY, "usage does not say so"),
        ],
    )
    async def test_what_a_server_gets_wrong(
        self, fault: str, capability: str, verdict: Verdict, says: str
    ) -> None:
        async with RehearsalServer(RehearsalConfig(faults={fault: 1.0})) as server:
            finding = (await probed(server.url)).findings[capability]
        assert (finding.verdict, says in finding.detail) == (verdict, True), finding

    async def test_a_server_that_takes_tools_needs_no_flag_for_a_model_that_talks(self) -> None:
        async with RehearsalServer(RehearsalConfig(faults={"prose": 1.0})) as server:
            finding = (await probed(server.url)).findings["tools auto"]
        assert finding.verdict is Verdict.PARTLY
        assert finding.mend.startswith("no flag")

    async def test_a_length_that_only_a_refusal_tells(self) -> None:
        async def handler(request: web.Request) -> web.Response:
            if request.path.endswith("/models"):
                return web.json_response({"data": [{"id": MODEL}]})
            if (await request.json()).get("max_tokens", 0) > 1_000_000:
                said = "This model's maximum context length is 20,000 tokens. However, you requested more."
                return web.json_response({"error": {"message": said}}, status=400)
            return web.json_response({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})

        async with answering(handler) as url:
            result = await probed(url)
        assert result.findings["context length"].data == {"max_model_len": 20_000, "listed": 0}
        assert verdicts(result)["prefix cache"] == "unknown"  # neither usage nor metrics
        assert verdicts(result)["logprobs"] == "no"

    async def test_a_server_that_stalls_costs_the_time_limit_and_no_more(self) -> None:
        async with RehearsalServer(RehearsalConfig(faults={"stall": 1.0})) as server:
            result = await probed(server.url, seconds=0.5)
        assert verdicts(result)["served"] == "yes"
        assert set(verdicts(result).values()) == {"yes", "unknown"}
        assert "no answer within" in result.findings["chat"].detail


class TestCommand:
    async def test_the_agents_files_are_written_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        async with RehearsalServer(RehearsalConfig(tool_calling=False)) as server:
            results = [await command(server.url, "--model", MODEL, "--quick") for _ in range(2)]
        assert [result.exit_code for result in results] == [0, 0], results[0].output
        assert "as agent     usable, with tool_mode prompted" in results[0].output
        assert "REHEARSAL" in results[0].output
        folders = [tmp_path / f"probe-{MODEL}", tmp_path / f"probe-{MODEL}-2"]
        assert names(tmp_path) == [folder.name for folder in folders]
        spec = load_spec(folders[0] / "sweep.yaml")
        assert (spec.agents[0].model, spec.agents[0].tool_mode) == (MODEL, "prompted")
        assert (folders[0] / "agents" / MODEL / "kustomization.yaml").exists()
        findings = json.loads((folders[0] / "probe.json").read_text())["findings"]
        assert findings["repeatability"]["detail"] == "left out"

    async def test_json_is_all_that_is_printed(self, tmp_path: Path) -> None:
        async with RehearsalServer() as server:
            result = await command(
                server.url, "--json", "--quick", "--model", MODEL, "--out", str(tmp_path / "o")
            )
        document: Mapping[str, Any] = json.loads(result.stdout)
        assert (document["model"], document["rehearsal"]) == (MODEL, True)
        assert document["usable"]["agent"] == {"usable": True, "lacks": [], "tool_mode": "native"}

    async def test_only_what_was_asked_for_decides(self, tmp_path: Path) -> None:
        async with RehearsalServer(RehearsalConfig(max_model_len=10_000)) as server:
            codes = [
                (
                    await command(
                        server.url,
                        "--quick",
                        "--model",
                        MODEL,
                        "--for",
                        roles,
                        "--out",
                        str(tmp_path / roles),
                    )
                ).exit_code
                for roles in ("customer", "customer,agent")
            ]
        assert codes == [0, 1]
        assert not (tmp_path / "customer,agent" / "sweep.yaml").exists()

    async def test_a_dead_address(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        async with RehearsalServer() as server:
            url = server.url
        result = await command(url)
        assert result.exit_code == 1
        assert "cannot be reached" in result.output
        assert "mend: the server, if it is not up, or the URL" in result.output
        assert "as judge     not usable: served" in result.output
        assert names(tmp_path) == []

    async def test_a_page_that_is_no_model_server(self) -> None:
        async def handler(request: web.Request) -> web.Response:
            return web.Response(text="<html>Welcome</html>", content_type="text/html")

        async with answering(handler) as url:
            result = await command(url)
        assert result.exit_code == 1
        assert "no       served" in result.output
        assert "bytes that are not JSON" in result.output
        assert "mend: the address of a model server" in result.output

    async def test_a_wrong_key_is_told_and_never_shown(self) -> None:
        async def handler(request: web.Request) -> web.Response:
            said = f"Incorrect API key provided: {request.headers['Authorization']}"
            return web.json_response({"error": {"message": said}}, status=401)

        async with answering(handler) as url:
            result = await command(url, "--api-key-env", "PROBE_KEY", PROBE_KEY=KEY)
        assert result.exit_code == 1
        assert "answered 401" in result.output
        assert "--api-key-env" in result.output
        assert KEY not in result.output

    async def test_an_unknown_model_names_those_that_are_served(self) -> None:
        async with RehearsalServer() as server:
            result = await command(server.url, "--model", "gpt-9")
        assert result.exit_code == 1
        assert "the server lists rehearsal-strict" in result.output

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("ftp://host",), "is not one"),
            (("http://host", "--api-key-env", "NOT_SET"), "NOT_SET, which is not set"),
            (("http://host", "--for", "agent,poet"), "'poet' is none of agent, customer, judge"),
            (("http://host", "--time-limit", "0"), "must be more than 0"),
            (("http://host", "--out", "."), "exists already"),
        ],
    )
    async def test_bad_input(self, arguments: tuple[str, ...], says: str) -> None:
        result = await command(*arguments)
        assert isinstance(result.exception, InputError)
        assert says in str(result.exception)
