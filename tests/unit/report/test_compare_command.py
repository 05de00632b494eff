"""`policysweep compare` on runs in a local store."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from policysweep.commands.compare import compare
from policysweep.errors import InputError
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.store import ResultStore
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, world_pb2

from .records import DENY, FULL, manifest
from .verdict_records import judges, rubric, scenarios, simple


async def _run(folder: Path, name: str, *agents: str, digest: str = "ab" * 32, deny: int = 0) -> str:
    """A run of 12 scenarios, 2 a task; the first `deny` of them are denied, the others fully refunded."""
    played = scenarios(6, 2)
    inputs = RunInputs(played, {each.task_id: world_pb2.OrderWorld(today="2026-03-01") for each in played})
    made = manifest(*agents)
    made.run, made.dataset.digest, made.dataset.scenarios, made.dataset.tasks = name, digest, 12, 6
    ledger = RunLedger(ResultStore.from_url(str(folder), create=True).within(name))
    await ledger.begin(made, inputs)
    denied = {each.scenario_id for each in played[:deny]}
    for unit in planned_units(made, inputs):
        await ledger.write_record(_record(unit, DENY if unit.scenario_id in denied else FULL))
    return str(folder / name)


def _record(unit: run_pb2.Unit, outcome: ep.Outcome.ValueType) -> run_pb2.UnitRecord:
    episode = ep.Episode(
        episode_id=unit.unit_id,
        scenario_id=unit.scenario_id,
        task_id=unit.task_id,
        agent_persona=unit.agent_persona,
        seed=unit.seed,
        outcome=outcome,
        end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
    )
    return run_pb2.UnitRecord(unit=unit, episode=episode, attempts=1)


async def _judge(url: str, level: float) -> None:
    """Verdicts on every unit of a run: `level`, and half a point more in the first customer's scenarios."""
    ledger = RunLedger(ResultStore.from_url(url))
    asked = rubric()
    for panel in asked.panels:
        panel.digest = hashlib.sha256(panel.key.encode()).hexdigest()
    await ledger.verdicts.begin(await ledger.verdicts.proposed(asked, judges("j")))
    digests = {panel.key: panel.digest for panel in asked.panels}
    async for record in ledger.read_records():
        value = level + (0.5 if record.unit.scenario_id.endswith("_0") else 0.0)
        # Each task differs a little, or there would be no error to estimate.
        value += 0.01 * int(record.unit.task_id[-1]) * (level > 3.0)
        for made in simple(record.unit.unit_id, {"support": value, "reasoning": value}):
            made.verdict.panel_digest = digests[made.verdict.panel]
            await ledger.verdicts.write(made)


def _compare(*arguments: str) -> Result:
    return CliRunner().invoke(compare, list(arguments))


async def _two(tmp_path: Path) -> tuple[str, str]:
    return await _run(tmp_path, "one", "a"), await _run(tmp_path, "two", "a", "b", deny=4)


async def test_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await _two(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    result = await _threaded(first, second)
    assert result.exit_code == 0, result.output
    flat = " ".join(result.output.split())
    assert "First run one: a (model-of-a)" in flat
    assert "12 matched conversations (100% of those planned)" in flat
    assert "Full Refund Deny Refund 4" in flat
    assert "agent b is new" in flat
    # The names of the runs are no difference.
    assert "run was" not in flat


async def test_json(tmp_path: Path) -> None:
    first, second = await _two(tmp_path)
    result = await _threaded(first, second, "--json")
    found = orjson.loads(result.output)
    assert [run["run"] for run in found["runs"]] == ["one", "two"]
    assert found["pairs"][0]["outcomes"]["changed"]["changed"] == 4


async def test_scores_of_a_judge_of_both_runs(tmp_path: Path) -> None:
    first, second = await _two(tmp_path)
    for url, level in ((first, 2.0), (second, 4.0)):
        await _judge(url, level)
    found = orjson.loads((await _threaded(first, second, "--json")).output)
    assert found["judges"] == {"j": None}
    policy = found["pairs"][0]["scores"]["j"]["dimensions"]["policy"]
    assert (policy["verdict"], policy["n"]) == ("better", 12)
    assert policy["runs"] == [2.25, pytest.approx(4.275)]


async def test_a_judge_of_one_run_alone_is_named(tmp_path: Path) -> None:
    first, second = await _two(tmp_path)
    await _judge(second, 3.0)
    found = orjson.loads((await _threaded(first, second, "--json")).output)
    assert found["judges"] == {"j": "it did not judge run 'one'"}


async def test_two_agents_of_one_run(tmp_path: Path) -> None:
    _, second = await _two(tmp_path)
    result = await _threaded(second, second, "--agent-a", "a", "--agent-b", "b", "--json")
    assert orjson.loads(result.output)["pairs"][0]["agents"] == ["a", "b"]


async def test_one_agent_without_the_other_is_refused(tmp_path: Path) -> None:
    first, second = await _two(tmp_path)
    result = await _threaded(first, second, "--agent-a", "a")
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "--agent-b is missing: name an agent of each run, or neither"


async def test_runs_of_different_data_sets_are_refused(tmp_path: Path) -> None:
    first = await _run(tmp_path, "one", "a")
    second = await _run(tmp_path, "two", "a", digest="cd" * 32)
    result = await _threaded(first, second)
    assert isinstance(result.exception, InputError)
    assert "only runs of the same scenarios and order worlds can be compared" in str(result.exception)


async def _threaded(*arguments: str) -> Result:
    """The command starts its own event loop, so it runs beside the test's."""
    return await asyncio.to_thread(_compare, *arguments)
