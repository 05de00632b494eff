"""What the prefix cache of a real vLLM server holds of a sweep, beside what it could hold at best.

A short sweep, in which the server's first model plays agent, customer and judge, goes through a proxy that
reads every request. The server counts the tokens that it looked up in its cache and those that it found
(`vllm:prefix_cache_queries`, `vllm:prefix_cache_hits`). The ideal is that of `bench/prefix_cache.py` for the
same requests, in characters, so shares are compared and not sums. The counts are of the whole server: nobody
else may use it meanwhile, and what it was asked before can only raise its share. Nothing here depends on what
the model says.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from bench.model_proxy import ModelProxy
from bench.prefix_cache import PromptFigures
from bench.prompts import play, rendered
from policysweep.launch import Launcher
from policysweep.sweep.spec import SweepSpec

RESULTS = Path(__file__).with_name("results") / "vllm.json"
URL = "POLICYSWEEP_BENCH_VLLM_URL"
"""Environment variable with the server's address, for example http://127.0.0.1:8000/v1."""
ROLES = ("agent", "customer", "judge")

_HITS, _QUERIES = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
_SECONDS = 900

Conversations = Mapping[str, Sequence[str]]
"""The prompts of each session, in the order in which they came."""


def run(console: Console, url: str) -> dict[str, Any]:
    """Play a short sweep on the server at `url`; print the figures and give them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        figures = runner.run(measure(url, folder))
    console.print(_table(figures))
    return figures


async def measure(url: str, folder: str, models: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The figures of a short sweep whose run lies in `folder`; `models` by role, where not the first."""
    prompts: defaultdict[str, list[str]] = defaultdict(list)

    def keep(session: str, body: bytes) -> None:
        prompts[session].append(rendered(orjson.loads(body), tools_first=False))

    root = url.rstrip("/").removesuffix("/v1")
    async with aiohttp.ClientSession() as http, ModelProxy([root], keep) as proxy:
        first = await _first_model(http, f"{root}/v1/models")
        before = await _counters(http, f"{root}/metrics")
        async with Launcher(Path(folder, "logs"), print) as launcher:
            chosen = {**dict.fromkeys(ROLES, first), **(models or {})}
            await play(_spec(f"{proxy.url}/v1", chosen), folder, launcher)
        after = await _counters(http, f"{root}/metrics")
    queries, hits = (after[name] - before[name] for name in (_QUERIES, _HITS))
    server = {"queries": queries, "hits": hits, "share": round(hits / queries, 4)}
    return {"model": first, "server": server, "ideal": ideal(prompts)}


async def _first_model(http: aiohttp.ClientSession, url: str) -> str:
    async with http.get(url) as answer:
        return str((await answer.json())["data"][0]["id"])


async def _counters(http: aiohttp.ClientSession, url: str) -> Mapping[str, float]:
    """The server's counters, summed over its models and engines."""
    found: dict[str, float] = {}
    async with http.get(url) as answer:
        for family in text_string_to_metric_families(await answer.text()):
            for sample in family.samples:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    if missing := [name for name in (_QUERIES, _HITS) if name not in found]:
        raise SystemExit(f"{url} has no {' and no '.join(missing)}: is it a vLLM server?")
    return found


def _spec(url: str, models: Mapping[str, str]) -> SweepSpec:
    """Short answers at temperature 1: at 0 a model with random weights writes one word for ever."""
    agent, customer, judge = (
        {
            "model": models[role],
            "model_url": url,
            "temperature": 1.0,
            "max_tokens": 64,
            "model_timeout_seconds": _SECONDS,
        }
        for role in ROLES
    )
    return SweepSpec.model_validate(
        {
            "name": "bench-vllm",
            "scenarios": {"limit": 2},
            "agents": [{"name": "agent", **agent}],
            "customer": customer,
            "judges": [{"name": "judge", **judge}],
            "limits": {"max_turns": 3, "agent_call_seconds": _SECONDS, "unit_seconds": 4 * _SECONDS},
            "concurrency": 2,
        }
    )


def ideal(conversations: Conversations) -> dict[str, dict[str, float]]:
    """Shares that an unlimited cache of 16-token blocks holds, by role and of all; one cache for all roles.

    With an unlimited cache it makes no difference in which order conversations come.
    """
    roles: dict[str, PromptFigures] = {role: PromptFigures() for role in ROLES}
    everything = PromptFigures()
    for session, prompts in conversations.items():
        roles[_role(session)].add(prompts)
        everything.add(prompts)
    return {name: _shares(figures) for name, figures in {**roles, "all": everything}.items()}


def _role(session: str) -> str:
    """Who asks: the sessions of customer and judge are named after it."""
    if session.endswith("-customer"):
        return "customer"
    # The judge's question whether there are token probabilities belongs to no session.
    return "judge" if session.endswith(("-judge", "-goals")) or not session else "agent"


def _shares(figures: PromptFigures) -> dict[str, float]:
    return {
        "calls": figures.prompts,
        "characters": figures.characters,
        "within_conversation": round(figures.within_episode, 4) if figures.later_characters else 0.0,
        "over_sweep": round(figures.over_sweep, 4) if figures.characters else 0.0,
    }


def _table(figures: Mapping[str, Any]) -> Table:
    table = Table(title=f"Prefix cache of a real server, {figures['model']}, two scenarios judged")
    for column in ("", "calls", "size of prompts", "cached within conversation", "cached over sweep"):
        table.add_column(column, justify="right" if column else "left")
    for role, row in figures["ideal"].items():
        prompts = f"{row['characters']:,} char."
        shares = (f"{row[key]:.1%}" for key in ("within_conversation", "over_sweep"))
        table.add_row(f"ideal, {role}", f"{row['calls']}", prompts, *shares)
    server = figures["server"]
    table.add_row("server's count", "", f"{server['queries']:,.0f} tokens", "", f"{server['share']:.1%}")
    return table


def save(document: Mapping[str, Any]) -> None:
    """Write the figures beside the other results."""
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
