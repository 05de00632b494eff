"""Conversation records of the public layout, and runs to export."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from policysweep.datasets.load import load
from policysweep.interop.dripr.scenarios import scenario_record
from policysweep.interop.importing import Batch, ImportedRun, collect, plan_import, source, write
from policysweep.interop.spool import Spool
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.manifest import FORMAT
from policysweep.sweep.plan import plan_units, scenario_keys
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, judge_pb2, run_pb2, scenario_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep

Json = dict[str, Any]


@cache
def scenarios() -> tuple[scenario_pb2.Scenario, ...]:
    return load("builtin").scenarios[:4]


def said(turn: str, message: str) -> Json:
    return {"turn": turn, "message": message, "tool_calls": None, "tool_result": None}


def called(name: str = "get_order_details", call_id: str = "call_0", **arguments: Any) -> Json:
    call = {"tool_name": name, "tool_call_id": call_id, "arguments": arguments}
    return {"turn": "tool_call", "message": None, "tool_calls": [call], "tool_result": None}


def answered(name: str = "get_order_details", call_id: str = "call_0", **result: Any) -> Json:
    answer = {"tool_name": name, "tool_call_id": call_id, "result": result}
    return {"turn": "tool_result", "message": None, "tool_calls": None, "tool_result": answer}


TALK = (
    said("customer", "I want my money back."),
    called(order_id="ORD-1"),
    answered(order_id="ORD-1", status="delivered"),
    said("agent", "You get half of it."),
    said("customer", "Fine."),
    said("agent", "Done."),
    called("process_return", "process_return_1", order_id="ORD-1"),
    answered("process_return", "process_return_1", status="success"),
)


def conversation(
    turns: Sequence[Json] = TALK,
    *,
    scenario: int = 0,
    row: int | None = 0,
    by_customer: Sequence[str] = (),
    **changes: Any,
) -> Json:
    """A record as the public code writes it; `by_customer` names the tools that the customer called."""
    name = scenarios()[scenario].scenario_id + (f"_r{row:05d}" if row is not None else "")
    calls = [call for turn in turns for call in turn["tool_calls"] or ()]
    record: Json = {
        "scenario_id": name,
        "conversation_type": "single",
        "finished": True,
        "source_scenario": scenario_record(scenarios()[scenario]) | {"scenario_id": name},
        "conversation_1": list(copy.deepcopy(turns)),
        "tool_interactions_1": [
            call | {"caller": "agent"} for call in calls if call["tool_name"] not in by_customer
        ],
        "customer_tool_interactions_1": [
            call | {"caller": "customer"} for call in calls if call["tool_name"] in by_customer
        ],
        "customer_withdrew_1": False,
        "agent_persona_1": "FAIR",
        "resolution_1": {
            "resolution_type": "RETURN_REFUND_PARTIAL_BANK",
            "resolution_description": "Half of it.",
        },
        "num_conversations": 1,
        "row_id": name,
        "user_idx": (row or 0) + 1,
        "scenario_idx": (row or 0) + 1,
    }
    return record | changes


def lines(path: Path, records: Iterable[Any]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def planned(path: Path, spool: Spool, agent: str | None = None) -> tuple[Batch, ImportedRun]:
    sources = [source(path, agent)]
    batch = collect(sources, spool)
    return batch, plan_import(batch, "imported", sources, 20)


async def imported(path: Path, agent: str | None = None) -> RunLedger:
    """The run that a file makes, in memory."""
    ledger = RunLedger(ResultStore.from_url("memory://"))
    with Spool() as spool:
        batch, run = planned(path, spool, agent)
        await write(ledger, batch, run)
    return ledger


async def records(ledger: RunLedger) -> list[run_pb2.UnitRecord]:
    """The records of a run without the time of their writing."""
    found = [record async for record in ledger.read_records()]
    for record in found:
        record.ClearField("recorded_at")
    return found


# ------------------------------------------------------------------------------------------ a run of our own


def manifest() -> run_pb2.RunManifest:
    return run_pb2.RunManifest(
        format=FORMAT,
        run="ours",
        dataset=run_pb2.DatasetInfo(name="builtin", digest="ab" * 32, scenarios=4, tasks=1),
        agents=[
            run_pb2.AgentEntry(name=name, info=agent_pb2.AgentInfo(model=f"m-{name}"))
            for name in ("strict", "fair")
        ],
        simulator=simulator_pb2.SimulatorInfo(customer_model="c"),
        trials=2,
        persona_assignment=run_pb2.PERSONA_ASSIGNMENT_BALANCED,
        rehearsal=True,
    )


def episode(unit: run_pb2.Unit) -> ep.Episode:
    """A conversation with all that the public layout has no place for."""
    return ep.Episode(
        episode_id=unit.unit_id,
        scenario_id=unit.scenario_id,
        task_id=unit.task_id,
        agent_persona=unit.agent_persona,
        seed=unit.seed,
        messages=[
            ep.Message(role=ep.ROLE_CUSTOMER, content="Hello\u2028there\r\n\U0001f600"),
            ep.Message(
                role=ep.ROLE_AGENT,
                content="Let me see.",
                tool_calls=[
                    ep.ToolCall(id="c1", name="get_order_details", arguments_json='{"order_id": "O"}'),
                    ep.ToolCall(id="c2", name="get_policy_info", arguments_json='{"broken": '),
                ],
            ),
            ep.Message(
                role=ep.ROLE_TOOL,
                content='{"status":"ok","order_id":"O"}',
                tool_call_id="c1",
                tool_name="get_order_details",
                tool_status=ep.TOOL_STATUS_OK,
            ),
            ep.Message(
                role=ep.ROLE_TOOL,
                content='{"status":"error","error":"not JSON"}',
                tool_call_id="c2",
                tool_name="get_policy_info",
                tool_status=ep.TOOL_STATUS_ERROR,
            ),
            ep.Message(role=ep.ROLE_AGENT, content="No."),
        ],
        customer_tool_events=[
            ep.CustomerToolEvent(
                after_message=1,
                call=ep.ToolCall(id="k1", name="customer_inspect_profile", arguments_json="{}"),
                result_json='{"status":"ok"}',
                status=ep.TOOL_STATUS_OK,
            )
        ],
        resolution=ep.Resolution(
            outcome=ep.OUTCOME_DENY_REFUND,
            description="The window is over.",
            conditions=["none"],
            customer_next_steps=["keep it", "or sell it"],
        ),
        outcome=ep.OUTCOME_DENY_REFUND,
        reconciliation=ep.Reconciliation(declared=ep.OUTCOME_DENY_REFUND),
        end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
        errors=ep.ErrorCounts(agent_malformed_calls=1),
        model_calls=[
            ep.ModelCall(
                role=ep.ROLE_AGENT,
                after_message=1,
                usage=ep.Usage(prompt_tokens=100, completion_tokens=7, latency_seconds=0.5, model_calls=1),
                finish_reason=ep.FINISH_REASON_STOP,
            )
        ],
        turns=1,
        duration_seconds=1.5,
        rehearsal=True,
    )


async def our_run(*, skip: int = 0) -> RunLedger:
    """A run that was played here; the first `skip` units of its plan have no record."""
    ledger = RunLedger(ResultStore.from_url("memory://"))
    found = scenarios()
    kept = manifest()
    kept.dataset.tasks = len({each.task_id for each in found})
    worlds = load("builtin").worlds
    await ledger.begin(kept, RunInputs(found, worlds))
    for unit in list(plan_units(kept, scenario_keys(found)))[skip:]:
        record = run_pb2.UnitRecord(unit=unit, episode=episode(unit), attempts=1)
        record.recorded_at.FromSeconds(1_780_000_000)
        await ledger.write_record(record)
    return ledger


def verdict(
    unit_id: str,
    panel: str = "dialogue",
    *scores: judge_pb2.Score,
    judge: str = "gpt",
    at: int = 0,
    **parts: Any,
) -> run_pb2.VerdictRecord:
    found = run_pb2.VerdictRecord(
        unit_id=unit_id,
        judge=judge,
        rubric=judge_pb2.RubricRef(name="drip-r", version=1),
        verdict=judge_pb2.PanelVerdict(panel=panel, scores=scores, **parts),
    )
    found.recorded_at.FromSeconds(1_780_000_000 + at)
    return found


async def stream(verdicts: Iterable[run_pb2.VerdictRecord]) -> AsyncGenerator[run_pb2.VerdictRecord]:
    for each in verdicts:
        yield each
