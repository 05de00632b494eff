"""What the prompts of agent, customer and judge hold, and what a prefix cache makes of them at best.

A sweep is played and judged by the rehearsal models through a proxy that reads every request. The prompts are
laid out as the chat templates of open models do it: tools behind the system text (Qwen, Hermes, Llama), or
before it (Mistral and the rehearsal server). The figures are ideal: a cache that never evicts, blocks of 16
tokens, four characters a token. Each served model has a cache of its own. What a call brings that no call
before it had, say the result of a tool, no cache can hold; the share of what had been sent before is the part
that a layout can lose.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from bench.model_proxy import ModelProxy
from bench.prefix_cache import PromptFigures
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.client import Channels
from policysweep.sweep.driver import Driver, load_inputs, runner_settings
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judging import JudgeStage
from policysweep.sweep.runner import Progress
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec
from policysweep.v1 import judge_pb2

RESULTS = Path(__file__).with_name("results") / "prompts.json"

REFERENCE = {
    "agent_and_customer_characters_per_scenario": 380_000,
    "judge_characters_per_scenario": 144_000,
    "agent_cached_within_conversation": "0.85 to 0.87",
    "judge_cached_within_episode": 0.04,
    "uncached_characters_per_scenario": 105_000,
}
"""The public DRIP-R code, published: the last figure over a whole sweep with an unlimited cache."""
BUDGET = {"cached_within": 0.97, "uncached_characters_per_scenario": 105_000 / 4}

_RUBRIC = judge_pb2.RubricRef(name="drip-r", version=1)
_AGENT = "fair"
_ROLES = {f"rehearsal-{_AGENT}": "agent", "rehearsal-customer": "customer", "rehearsal-judge": "judge"}
LAYOUTS = ("tools behind the system text", "tools first")


def run(console: Console, *, dataset: str = "builtin", worlds: str | None = None) -> dict[str, Any]:
    """Play and judge every scenario of a data set once; print the figures and give them."""
    calm_collector()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        requests, scenarios = runner.run(_requests(dataset, worlds, folder))
    rows = {layout: _rows(requests, scenarios, layout == LAYOUTS[1]) for layout in LAYOUTS}
    for layout, figures in rows.items():
        console.print(_table(f"Prompts, {dataset}, {scenarios} scenarios, {layout}", figures))
    console.print(
        "Public code: 380,000 characters a scenario and 144,000 for the judge, 85 to 87% of the agent's "
        "later calls within a conversation and 4% of the judge's; 105,000 uncached over a sweep. "
        "Aim: 97% within, 26,250 uncached."
    )
    return {"scenarios": scenarios, "public_code": REFERENCE, "budget": BUDGET, "measured": rows}


Requests = Mapping[str, Mapping[str, list[Mapping[str, Any]]]]
"""Bodies of requests by role and session, in the order in which they came."""


async def _requests(dataset: str, worlds: str | None, folder: str) -> tuple[Requests, int]:
    seen: defaultdict[str, defaultdict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))

    def keep(session: str, body: bytes) -> None:
        request = orjson.loads(body)
        seen[_ROLES[request["model"]]][session].append(request)

    async with Launcher(Path(folder, "logs"), print) as launcher:
        rehearsal = await launcher.start("rehearsal", "policysweep rehearsal")
        async with ModelProxy([f"http://{rehearsal}"], keep) as proxy:
            scenarios = await play(_spec(dataset, worlds, f"{proxy.url}/v1"), folder, launcher)
    return seen, scenarios


async def play(spec: SweepSpec, folder: str, launcher: Launcher) -> int:
    """Play and judge a sweep; the number of its scenarios. Ends the benchmark when a unit fails."""
    played = load_inputs(spec)
    ledger = await prepare_run(folder, spec.name)
    driver = Driver(spec, played)
    if not (await driver.run(ledger, launcher)).complete:
        raise SystemExit("units failed during the benchmark: its figures would mean nothing")
    async with Channels() as channels:
        clients = [JudgeClient(name, target, channels) for name, target in driver.judges.items()]
        for client in clients:
            await client.info()
        stage = JudgeStage(ledger, played.inputs.scenarios, clients, runner_settings(spec), Progress(), print)
        await stage.run(await stage.plan(_RUBRIC))
    return len(played.inputs.scenarios)


def _spec(dataset: str, worlds: str | None, url: str) -> SweepSpec:
    return SweepSpec.model_validate(
        {
            "name": "bench-prompts",
            "dataset": {"source": dataset, "worlds": worlds},
            "agents": [{"name": _AGENT, "model": f"rehearsal-{_AGENT}", "model_url": url}],
            "customer": {"model": "rehearsal-customer", "model_url": url},
            "judges": [{"name": "judge", "model": "rehearsal-judge", "model_url": url}],
        }
    )


def _rows(requests: Requests, scenarios: int, tools_first: bool) -> dict[str, dict[str, float]]:
    rows = {}
    for role in ("agent", "customer", "judge"):
        figures = PromptFigures()
        for session in requests[role].values():
            figures.add([rendered(request, tools_first=tools_first) for request in session])
        rows[role] = _row(figures, scenarios)
    summed = ("characters_per_scenario", "uncached_characters_per_scenario")
    rows["all"] = {key: sum(row[key] for row in rows.values()) for key in summed}
    return rows


def _row(figures: PromptFigures, scenarios: int) -> dict[str, float]:
    uncached = figures.characters - figures.sweep_cached
    return {
        "calls_per_scenario": round(figures.prompts / scenarios, 1),
        "characters_per_scenario": round(figures.characters / scenarios),
        "cached_within": round(figures.within_episode, 4),
        "cached_of_what_was_sent_before": round(figures.of_sent_before, 4),
        "cached_over_sweep": round(figures.over_sweep, 4),
        "uncached_characters_per_scenario": round(uncached / scenarios),
    }


def rendered(request: Mapping[str, Any], *, tools_first: bool) -> str:
    """A request as one text, in the order of a chat template."""
    return "".join(_parts(request, tools_first))


def _parts(request: Mapping[str, Any], tools_first: bool) -> Iterator[str]:
    tools = "".join(orjson.dumps(tool).decode() + "\n" for tool in request.get("tools") or ())
    first, *turns = request["messages"]
    yield from (tools, _turn(first)) if tools_first else (_turn(first), tools)
    yield from map(_turn, turns)


def _turn(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    written = orjson.dumps([call["function"] for call in calls]).decode() if calls else ""
    return f"<|im_start|>{message['role']}\n{message.get('content') or ''}{written}<|im_end|>\n"


def _table(title: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    table = Table(title=title)
    columns = list(rows["agent"])
    for column in ("role", *columns):
        table.add_column(column.replace("_", " "), justify="right")
    for role, row in rows.items():
        table.add_row(role, *(f"{row[column]:,}" if column in row else "" for column in columns))
    return table


def save(document: Mapping[str, Any]) -> None:
    """Write the figures beside the other results."""
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
