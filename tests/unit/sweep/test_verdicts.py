"""The ledger of verdicts: the first one stands, a panel counts by its text, goals are kept once."""

from __future__ import annotations

import asyncio

import pytest

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verdicts import PanelKey, VerdictLedger, goals_name, is_judged, panel_keys
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .judge_samples import UNIT, digest, goals, info, judging, rubric, verdict
from .samples import memory

POLICY = PanelKey("ada", "policy", digest("policy"))
FILE = f"verdicts/ada/policy-{digest('policy')[:16]}/{UNIT}.binpb"
GOALS_FILE = f"inputs/goals/{goals_name('t0')}"


async def begun(*names: str, store: ResultStore | None = None) -> tuple[ResultStore, VerdictLedger]:
    store = store or memory()
    ledger = VerdictLedger(store)
    await ledger.begin(await ledger.proposed(rubric(), dict.fromkeys(names, info())))
    return store, ledger


async def read(ledger: VerdictLedger, of: run_pb2.Judging) -> list[tuple[str, str, str]]:
    return [(record.judge, record.verdict.panel, record.unit_id) async for record in ledger.read(of)]


@pytest.mark.parametrize(
    ("fault", "judged"),
    [
        (ep.FAULT_PARTY_UNSPECIFIED, True),
        (ep.FAULT_PARTY_AGENT, True),
        (ep.FAULT_PARTY_CUSTOMER, False),
        (ep.FAULT_PARTY_TOOLS, False),
        (ep.FAULT_PARTY_BUDGET, False),
        (ep.FAULT_PARTY_INFRASTRUCTURE, False),
    ],
)
def test_judges_score_what_ended_cleanly_or_by_a_fault_of_the_agent(
    fault: ep.FaultParty.ValueType, judged: bool
) -> None:
    assert is_judged(ep.Episode(end=ep.EpisodeEnd(fault=fault))) is judged


# ------------------------------------------------------------------ who judges, by what


async def test_a_run_that_was_never_judged() -> None:
    assert await VerdictLedger(memory()).read_judging() is None


async def test_a_proposal_writes_nothing() -> None:
    store = memory()
    proposal = await VerdictLedger(store).proposed(rubric(), {"ada": info()})
    assert proposal == judging("ada")
    assert [name async for name in store.list_names()] == []


async def test_judges_are_added_and_the_last_rubric_counts() -> None:
    _, ledger = await begun("eve")
    edited = rubric(talk="other words")
    await ledger.begin(await ledger.proposed(edited, {"ada": info()}))
    assert await ledger.read_judging() == judging("ada", "eve", of=edited)


async def test_two_drivers_with_judges_of_their_own_lose_neither() -> None:
    ledger = VerdictLedger(memory())
    first = await ledger.proposed(rubric(), {"ada": info()})
    second = await ledger.proposed(rubric(), {"eve": info()})
    await asyncio.gather(ledger.begin(first), ledger.begin(second))
    assert await ledger.read_judging() == judging("ada", "eve")


async def test_a_judge_that_changed_is_refused_with_the_change_named() -> None:
    _, ledger = await begun("ada", "eve")
    changed = info("gpt-x", samples=3)
    with pytest.raises(ManifestMismatch) as raised:
        await ledger.proposed(rubric(), {"eve": info(), "ada": changed})
    assert str(raised.value) == (
        "judge ada of memory:// was another one: model was rehearsal-judge and is gpt-x; samples was 1 and "
        "is 3. Undo the change to go on with it, or give the new judge another name."
    )
    assert await ledger.read_judging() == judging("ada", "eve")


async def test_a_judge_that_somebody_else_added_meanwhile_is_refused() -> None:
    ledger = VerdictLedger(memory())
    mine = await ledger.proposed(rubric(), {"ada": info()})
    await ledger.begin(await ledger.proposed(rubric(), {"ada": info("gpt-x")}))
    with pytest.raises(ManifestMismatch, match="model was gpt-x and is rehearsal-judge"):
        await ledger.begin(mine)


@pytest.mark.parametrize("name", ["", "..", "a/b", "../ada", ".ada", "a" * 64, "ada\n", "a\u2028b"])
async def test_a_judge_whose_name_is_no_files_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot name a judge or panel"):
        await VerdictLedger(memory()).proposed(rubric(), {name: info()})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (PanelKey("ada", "../policy", digest("")), "cannot name a judge or panel"),
        (PanelKey("../ada", "policy", digest("")), "cannot name a judge or panel"),
        (PanelKey("ada", "policy", "../../../../x"), "is not a SHA-256 digest"),
        (PanelKey("ada", "policy", digest("")[:63]), "is not a SHA-256 digest"),
    ],
)
async def test_hostile_names_never_become_paths(key: PanelKey, said: str) -> None:
    ledger = VerdictLedger(memory())
    with pytest.raises(InputError, match=said):
        await ledger.judged_units(key)
    record = verdict(judge=key.judge, panel=key.panel)
    record.verdict.panel_digest = key.digest
    with pytest.raises(InputError, match=said):
        await ledger.write(record)


DAMAGED_JSON = (b"", b"{", b"[]", b"{}", b"null", b"3", b"true", b'"x"', b'{"nonsense": 1}', b"\xff\xfe")


@pytest.mark.parametrize("data", DAMAGED_JSON)
@pytest.mark.parametrize("name", ["judging/rubric.json", "judging/judges/ada.json"])
async def test_damaged_files_are_told_with_the_way_out(name: str, data: bytes) -> None:
    store, ledger = await begun("ada")
    await store.replace(name, data)
    with pytest.raises(StoreError) as raised:
        await ledger.read_judging()
    assert str(raised.value).startswith(f"memory:///{name} is damaged: ")
    assert str(raised.value).endswith("delete the file and judge the run again")


async def test_a_judges_file_under_another_name_is_damaged() -> None:
    store, ledger = await begun("ada")
    await store.create("judging/judges/eve.json", await store.read("judging/judges/ada.json") or b"")
    with pytest.raises(StoreError, match=r"eve\.json is damaged: it is of judge ada"):
        await ledger.read_judging()


async def test_files_of_others_beside_the_judges_are_not_read() -> None:
    store, ledger = await begun("ada")
    for name in ("README.txt", "notes/x.json"):
        await store.create(f"judging/judges/{name}", b"hello")
    assert await ledger.read_judging() == judging("ada")


# ------------------------------------------------------------------ verdicts


async def test_the_first_verdict_stands() -> None:
    store, ledger = await begun("ada")
    assert await ledger.write(verdict()) is True
    late = verdict()
    late.verdict.unusable_answers = 7
    assert await ledger.write(late) is False
    assert run_pb2.VerdictRecord.FromString(await store.read(FILE) or b"") == verdict()
    assert await ledger.judged_units(POLICY) == {UNIT}


async def test_of_many_writers_one_wins() -> None:
    _, ledger = await begun("ada")
    verdicts = [verdict() for _ in range(20)]
    for number, each in enumerate(verdicts):
        each.recorded_at.nanos = number
    written = await asyncio.gather(*(ledger.write(each) for each in verdicts))
    assert sum(written) == 1


async def test_a_panel_counts_by_its_text() -> None:
    _, ledger = await begun("ada", "eve")
    for record in (
        verdict(),
        verdict(text="earlier words"),
        verdict(panel="talk"),
        verdict(judge="eve"),
        verdict(unit="f" * 32),
    ):
        assert await ledger.write(record)
    now = judging("ada", "eve")
    assert await read(ledger, now) == [
        ("ada", "policy", UNIT),
        ("ada", "policy", "f" * 32),
        ("ada", "talk", UNIT),
        ("eve", "policy", UNIT),
    ]
    assert await read(ledger, judging("ada", "eve", of=rubric(policy="earlier words"))) == [
        ("ada", "policy", UNIT),
        ("ada", "talk", UNIT),
    ]
    assert [(key.judge, key.panel) for key in panel_keys(now)] == [
        (judge, panel) for judge in ("ada", "eve") for panel in ("policy", "talk", "interest")
    ]


def other(**changes: str) -> bytes:
    return verdict(**changes).SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\x00" * 50,
        other()[:-3],
        other(unit="f" * 32),
        other(judge="eve"),
        other(panel="talk"),
        other(text="other words"),
    ],
    ids=["empty", "text", "zeros", "cut", "unit", "judge", "panel", "edition"],
)
async def test_a_damaged_verdict_is_never_read_as_one(data: bytes) -> None:
    store, ledger = await begun("ada")
    await store.create(FILE, data)
    assert [pair async for pair in ledger.scan_panel(POLICY)] == [(FILE, None)]
    with pytest.raises(StoreError, match="not the verdict that its name promises; delete the file"):
        await read(ledger, judging("ada"))


async def test_files_of_others_beside_the_verdicts_are_not_read() -> None:
    store, ledger = await begun("ada")
    await ledger.write(verdict())
    await store.create(f"{POLICY.folder}/README.txt", b"hello")
    assert await ledger.judged_units(POLICY) == {UNIT}
    assert await read(ledger, judging("ada")) == [("ada", "policy", UNIT)]


async def test_a_verdict_of_no_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a unit id"):
        await VerdictLedger(memory()).write(verdict(unit="../escape"))


# ------------------------------------------------------------------ goals


async def test_the_first_goals_of_a_task_stand() -> None:
    ledger = VerdictLedger(memory())
    assert await ledger.read_goals("t0") is None
    assert await ledger.write_goals(goals()) == goals()
    assert await ledger.write_goals(goals(text="Something else", judge="eve")) == goals()
    assert await ledger.read_goals("t0") == goals()


@pytest.mark.parametrize("task", ["../../etc/passwd", "", "a/b", "\u2028", "x" * 5000])
async def test_any_text_is_a_task_id(task: str) -> None:
    store = memory()
    ledger = VerdictLedger(store)
    await ledger.write_goals(goals(task))
    assert (await ledger.read_goals(task)) == goals(task)
    assert [name async for name in store.list_names()] == [f"inputs/goals/{goals_name(task)}"]


async def test_all_goals() -> None:
    store = memory()
    ledger = VerdictLedger(store)
    for task in ("t1", "t0"):
        await ledger.write_goals(goals(task))
    await store.create("inputs/goals/README.txt", b"hello")
    assert await ledger.goals_names() == {goals_name("t0"), goals_name("t1")}
    assert {each.task_id async for each in ledger.read_all_goals()} == {"t0", "t1"}


@pytest.mark.parametrize("data", [*DAMAGED_JSON, b'{"task_id": "t0"}', b'{"task_id": "t1", "goals": [{}]}'])
async def test_damaged_goals_are_not_silently_extracted_anew(data: bytes) -> None:
    store = memory()
    ledger = VerdictLedger(store)
    await store.create(GOALS_FILE, data)
    for reading in (ledger.read_goals("t0"), ledger.write_goals(goals())):
        with pytest.raises(StoreError, match=r"is damaged: .* delete it together with the verdicts"):
            await reading


async def test_a_rubric_survives_the_file() -> None:
    _, ledger = await begun("ada")
    asked = rubric()
    asked.metrics[0].question = 'Ünïcode "quotes" \u2028 and\r\nlines'
    asked.min_scale_mass = 0.5
    await ledger.begin(await ledger.proposed(asked, {}))
    found = await ledger.read_judging()
    assert found is not None
    assert found.rubric == asked
    assert found.rubric.metrics[2] == judge_pb2.Metric(key="interest_score", panel="interest", derived=True)
