"""Conversation records -> a run: which scenarios, which trials, and all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysweep.errors import InputError, ManifestMismatch
from policysweep.interop.dripr.scenarios import scenario_record, split_row, with_row
from policysweep.interop.importing import collect, plan_import, source, write
from policysweep.interop.spool import Spool
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verify import verify_run
from policysweep.v1 import episode_pb2 as ep

from .samples import TALK, conversation, imported, lines, records, said, scenarios


async def test_a_file_becomes_a_run_that_is_proven(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [conversation(scenario=number, row=number) for number in range(3)])
    ledger = await imported(path)
    result = await verify_run(ledger)
    assert result.ok
    assert (result.planned, result.recorded) == (3, 3)
    manifest = await ledger.read_manifest()
    [agent] = manifest.agents
    assert (agent.name, agent.info.variant, agent.info.rehearsal) == ("gpt", "imported", False)
    assert (manifest.dataset.name, manifest.dataset.scenarios) == ("gpt.jsonl", 3)
    assert not manifest.HasField("simulator")
    assert not manifest.rehearsal
    inputs = await ledger.read_inputs()
    assert list(inputs.scenarios) == list(scenarios()[:3])
    assert inputs.worlds == {}


async def test_agent_personas_may_follow_no_rule(tmp_path: Path) -> None:
    """The public code draws them at random."""
    personas = ["FAIR", "DIRECT", "FAIR", "AGREEABLE", "FAIR"]
    path = lines(
        tmp_path / "gpt.jsonl",
        [
            conversation(scenario=number % 2, row=number, agent_persona_1=persona)
            for number, persona in enumerate(personas)
        ],
    )
    ledger = await imported(path)
    assert (await verify_run(ledger)).ok
    assert sorted(
        (record.unit.scenario_id, ep.AgentPersona.Name(record.episode.agent_persona)[14:], record.unit.trial)
        for record in await records(ledger)
    ) == sorted(
        [
            (scenarios()[0].scenario_id, "FAIR", 0),
            (scenarios()[0].scenario_id, "FAIR", 1),
            (scenarios()[0].scenario_id, "FAIR", 2),
            (scenarios()[1].scenario_id, "DIRECT", 0),
            (scenarios()[1].scenario_id, "AGREEABLE", 0),
        ]
    )
    assert (await ledger.read_manifest()).trials == 3


async def test_rows_of_one_scenario_are_its_trials_in_the_order_of_the_rows(tmp_path: Path) -> None:
    talks = {7: "third", 0: "first", 3: "second"}
    path = lines(
        tmp_path / "gpt.jsonl",
        [conversation([said("customer", text)], row=row) for row, text in talks.items()],
    )
    found = {
        record.unit.trial: record.episode.messages[0].content
        for record in await records(await imported(path))
    }
    assert found == {0: "first", 1: "second", 2: "third"}


async def test_the_same_id_with_another_text_is_another_scenario(tmp_path: Path) -> None:
    """As for rows with order numbers of their own, and for personas whose names begin with a title."""
    other = conversation(row=4)
    other["source_scenario"]["first_customer_message"] = "My order number is 5."
    path = lines(tmp_path / "gpt.jsonl", [conversation(row=0), other, conversation(row=9)])
    found = {(record.unit.scenario_id, record.unit.trial) for record in await records(await imported(path))}
    name = scenarios()[0].scenario_id
    assert found == {(f"{name}_r00000", 0), (f"{name}_r00000", 1), (f"{name}_r00004", 0)}


def test_one_id_for_two_texts_is_refused_with_both_places(tmp_path: Path) -> None:
    other = conversation()
    other["source_scenario"]["first_customer_message"] = "Something else."
    path = lines(tmp_path / "gpt.jsonl", [conversation(), other])
    name = f"{scenarios()[0].scenario_id}_r00000"
    with Spool() as spool, pytest.raises(InputError) as raised:
        collect([source(path)], spool)
    assert f"{path}:2: scenario_id: '{name}' is another scenario here than in {path}:1" in str(raised.value)


async def test_several_files_are_several_agents_on_the_same_scenarios(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name / "with_resolution"
        folder.mkdir(parents=True)
        lines(folder / "conversations.jsonl", [conversation(row=0), conversation(scenario=1, row=1)])
    sources = [source(tmp_path / name / "with_resolution" / "conversations.jsonl") for name in ("a", "b")]
    ledger = RunLedger(ResultStore.from_url("memory://"))
    with Spool() as spool:
        batch = collect(sources, spool)
        await write(ledger, batch, plan_import(batch, "both", sources, 20))
    assert (await verify_run(ledger)).ok
    seeds = {record.unit.seed for record in await records(ledger)}
    assert [agent.name for agent in (await ledger.read_manifest()).agents] == ["a", "b"]
    assert len(seeds) == 2


def test_the_agent_is_the_folder_the_file_or_what_somebody_says(tmp_path: Path) -> None:
    assert source(tmp_path / "gpt-4o" / "conversations.jsonl").agent == "gpt-4o"
    assert source(tmp_path / "gpt-4o" / "no_resolution" / "conversations.jsonl").agent == "gpt-4o"
    assert source(tmp_path / "gpt-4o" / "june.jsonl").agent == "june"
    assert source(tmp_path / "june.jsonl", "gpt-4o").agent == "gpt-4o"
    with pytest.raises(InputError, match=r"the agent's name must be 1 to 63 .*: name it with --agent"):
        source(tmp_path / "two words.jsonl")


async def test_a_name_that_is_given_goes_before_the_one_in_a_record(tmp_path: Path) -> None:
    path = lines(tmp_path / "file.jsonl", [conversation() | {"policysweep": {"agent": "strict"}}])
    assert [record.unit.agent for record in await records(await imported(path))] == ["strict"]
    assert [record.unit.agent for record in await records(await imported(path, "mine"))] == ["mine"]


async def test_rehearsal_stays_marked(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [conversation() | {"policysweep": {"rehearsal": True}}])
    ledger = await imported(path)
    manifest = await ledger.read_manifest()
    assert manifest.rehearsal
    assert manifest.agents[0].info.rehearsal
    assert [record.episode.rehearsal for record in await records(ledger)] == [True]


async def test_a_trial_that_a_record_names_is_kept(tmp_path: Path) -> None:
    named = conversation(row=0) | {"policysweep": {"trial": 1}}
    path = lines(tmp_path / "gpt.jsonl", [named, conversation(row=1), conversation(row=2)])
    ledger = await imported(path)
    assert sorted(record.unit.trial for record in await records(ledger)) == [0, 1, 2]
    path = lines(tmp_path / "twice.jsonl", [named, named])
    with pytest.raises(InputError, match=rf"{path}:2: policysweep\.trial: 1 is that of {path}:1 already"):
        await imported(path)


def test_all_that_is_wrong_is_told_and_nothing_is_taken(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [conversation(), conversation(finished="yes")])
    with path.open("ab") as file:
        file.write(b'{"half": \n[]\n')
    with Spool() as spool, pytest.raises(InputError) as raised:
        collect([source(path)], spool)
    message = str(raised.value)
    assert message.startswith(f"{path}: nothing was imported, because of 3 errors:\n")
    assert f"{path}:2: finished: must be true or false, is a string" in message
    assert f"{path}:3: not JSON: " in message
    assert f"{path}:4: must be an object, is a list" in message


def test_many_errors_are_counted(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [3] * 30)
    with Spool() as spool, pytest.raises(InputError, match=r"because of 30 errors:(.|\n)*and 10 more"):
        collect([source(path)], spool)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with Spool() as spool, pytest.raises(InputError, match=r"empty\.jsonl: no conversation in it"):
        collect([source(lines(tmp_path / "empty.jsonl", []))], spool)


async def test_importing_again_completes_and_changes_nothing(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [conversation(scenario=number, row=number) for number in range(3)])
    store = ResultStore.from_url(str(tmp_path / "store"), create=True)
    ledger = RunLedger(store)
    with Spool() as spool:
        batch = collect([source(path)], spool)
        run = plan_import(batch, "imported", [source(path)], 20)
        assert (await write(ledger, batch, run)).new == 3
        lost = tmp_path / "store" / "episodes" / f"{run.units[1].unit_id}.binpb"
        lost.unlink()
        assert (await write(ledger, batch, run)).new == 1
        assert (await write(ledger, batch, run)).new == 0
    assert (await verify_run(ledger)).ok


async def test_another_file_under_the_same_name_is_refused(tmp_path: Path) -> None:
    first = lines(tmp_path / "gpt.jsonl", [conversation()])
    ledger = await imported(first)
    second = lines(tmp_path / "gpt.jsonl", [conversation(scenario=1)])
    with Spool() as spool:
        batch = collect([source(second)], spool)
        with pytest.raises(ManifestMismatch, match=r"dataset\.digest was"):
            await write(ledger, batch, plan_import(batch, "imported", [source(second)], 20))
    assert (await verify_run(ledger)).ok


async def test_conversations_without_outcome_are_counted(tmp_path: Path) -> None:
    broken = conversation(TALK[:4], scenario=1, finished=False, resolution_1=None)
    path = lines(tmp_path / "gpt.jsonl", [conversation(), broken])
    with Spool() as spool:
        batch = collect([source(path)], spool)
        run = plan_import(batch, "imported", [source(path)], 20)
        written = await write(RunLedger(ResultStore.from_url("memory://")), batch, run)
    assert (written.new, written.without_outcome) == (2, 1)


def test_ids_and_rows() -> None:
    assert split_row("Dr._t000_8df5_r00004") == ("Dr._t000_8df5", 4)
    assert split_row("Dr._t000_8df5") == ("Dr._t000_8df5", 0)
    assert split_row("_r00001") == ("_r00001", 0)
    assert with_row("a", 7) == "a_r00007"


def test_a_scenario_is_written_as_the_data_set_has_it() -> None:
    record = scenario_record(scenarios()[0])
    assert record["persona"]["Personality Style"].startswith("{'Openness': ")
    assert record["task"]["all_ambiguity_types"].startswith('["')
    assert list(record) == [
        "scenario_id",
        "Policy",
        "persona",
        "task",
        "first_customer_message",
        "detail_agent",
        "customer_task_detail",
        "task_id",
        "source",
    ]
