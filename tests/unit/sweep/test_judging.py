"""The judge stage: what is missing is asked once, what fails is asked again alone."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import pytest

from policysweep.errors import (
    InputError,
    JudgeUnusable,
    ManifestMismatch,
    ModelServerBusy,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerUnavailable,
    PolicysweepError,
    ServiceUnavailable,
    StoreError,
)
from policysweep.sweep import backlog as backlog_module
from policysweep.sweep.judge_plan import JudgePlan
from policysweep.sweep.judging import JudgeStage
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import WHOLE, Shard, in_shard
from policysweep.sweep.runner import Progress, RunnerSettings
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .judge_samples import PANELS, REF, FakeJudge, Script, info, panel_failure, rubric, verdict
from .samples import complete_run, inputs, manifest, memory, record_of, units

UNITS = sorted(unit.unit_id for unit in units())
ALL = {(unit, panel) for unit in UNITS for panel in PANELS}
SETTINGS = RunnerSettings(concurrency=4, max_attempts=3, unit_seconds=5.0, outage_seconds=300.0)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "_FIRST_DELAY", 0.0)


class Stage:
    """A stage with what it told."""

    def __init__(self, ledger: RunLedger, *judges: FakeJudge, settings: RunnerSettings = SETTINGS) -> None:
        self.said: list[str] = []
        self.progress = Progress()
        self.ledger = ledger
        self.stage = JudgeStage(ledger, inputs().scenarios, judges, settings, self.progress, self.said.append)

    async def plan(self, *panels: str, shard: Shard = WHOLE) -> JudgePlan:
        return await self.stage.plan(REF, panels, shard)

    async def run(self, *panels: str, shard: Shard = WHOLE) -> JudgePlan:
        plan = await self.plan(*panels, shard=shard)
        self.backlog = await asyncio.wait_for(self.stage.run(plan), 20)
        return plan


async def judged(ledger: RunLedger, judge: str = "ada") -> Counter[tuple[str, str]]:
    """Unit and panel of the verdicts of a judge that count."""
    return Counter(
        [
            (record.unit_id, record.verdict.panel)
            async for record in ledger.read_verdicts()
            if record.judge == judge
        ]
    )


def once_each(panels: Sequence[tuple[str, str]]) -> bool:
    return Counter(panels) == Counter(ALL)


def fails(times: int, error: PolicysweepError, *panels: str, unit: str = "") -> Script:
    """The first `times` answers on these panels (of this unit, or of all) are failures."""
    seen: Counter[tuple[str, str]] = Counter()

    def script(unit_id: str, panel: str) -> judge_pb2.PanelFailure | None:
        if panel not in panels or (unit and unit_id != unit):
            return None
        seen[unit_id, panel] += 1
        return panel_failure(panel, error) if seen[unit_id, panel] <= times else None

    return script


async def run_with_faults(**faults: ep.FaultParty.ValueType) -> tuple[RunLedger, dict[str, str]]:
    """A run whose first units ended by these faults; gives their ids by name."""
    ledger = RunLedger(memory())
    await ledger.begin(manifest(), inputs())
    planned = list(units())
    for unit in planned[len(faults) :]:
        await ledger.write_record(record_of(unit))
    for unit, fault in zip(planned, faults.values(), strict=False):
        record = record_of(unit)
        record.episode.end.reason, record.episode.end.fault = ep.END_REASON_ERROR_LIMIT, fault
        await ledger.write_record(record)
    return ledger, {name: unit.unit_id for name, unit in zip(faults, planned, strict=False)}


# ------------------------------------------------------------------ what is asked


async def test_everything_is_asked_once_and_kept() -> None:
    judge = FakeJudge()
    made = Stage(await complete_run(memory()), judge)
    await made.run()
    assert once_each(judge.panels_asked)
    assert set(await judged(made.ledger)) == ALL
    assert (made.stage.missing, made.said) == (0, [])
    tally = made.progress.agents["ada"]
    assert (tally.planned, tally.recorded, tally.failed, tally.duplicates) == (16, 16, 0, 0)
    assert tally.tokens == 110 * (len(ALL) + 2)
    request = judge.asked[0]
    unit = next(each for each in units() if each.unit_id == request.episode.episode_id)
    assert (request.scenario.scenario_id, request.seed) == (unit.scenario_id, unit.seed)


async def test_panels_of_a_conversation_are_asked_together() -> None:
    judge = FakeJudge()
    await Stage(await complete_run(memory()), judge).run()
    assert [tuple(request.panels) for request in judge.asked] == [PANELS] * 16


async def test_a_second_run_asks_nothing() -> None:
    ledger = await complete_run(memory())
    await Stage(ledger, FakeJudge()).run()
    judge = FakeJudge()
    again = Stage(ledger, judge)
    plan = await again.run()
    assert plan.describe() == "Judging: every verdict is there."
    assert (judge.asked, judge.goals_asked) == ([], [])


async def test_only_what_is_missing_is_asked() -> None:
    ledger = await complete_run(memory())
    for unit in UNITS[:5]:
        await ledger.verdicts.write(verdict(unit, "talk"))
    await ledger.verdicts.write(verdict(UNITS[0], "policy"))
    await ledger.verdicts.write(verdict(UNITS[0], "interest"))
    there = {*((unit, "talk") for unit in UNITS[:5]), (UNITS[0], "policy"), (UNITS[0], "interest")}
    judge = FakeJudge()
    await Stage(ledger, judge).run()
    assert Counter(judge.panels_asked) == Counter(ALL - there)
    assert set(await judged(ledger)) == ALL


async def test_one_panel_alone() -> None:
    judge = FakeJudge()
    made = Stage(await complete_run(memory()), judge)
    await made.run("talk")
    assert set(judge.panels_asked) == {(unit, "talk") for unit in UNITS}
    assert judge.goals_asked == []


async def test_a_plan_writes_nothing() -> None:
    store = memory()
    ledger = await complete_run(store)
    before = sorted([name async for name in store.list_names()])
    await Stage(ledger, FakeJudge()).plan()
    assert sorted([name async for name in store.list_names()]) == before


async def test_shards_are_disjoint_and_complete() -> None:
    ledger = await complete_run(memory())
    first, second = FakeJudge(), FakeJudge()
    await Stage(ledger, first).run(shard=Shard(0, 2))
    await Stage(ledger, second).run(shard=Shard(1, 2))
    assert {unit for unit, _ in first.panels_asked} == {u for u in UNITS if in_shard(u, Shard(0, 2))}
    assert once_each(first.panels_asked + second.panels_asked)
    # The first shard extracted the goals of both tasks.
    assert len(first.goals_asked + second.goals_asked) == 2


async def test_conversations_that_others_spoiled_are_not_judged() -> None:
    ledger, ids = await run_with_faults(
        agent=ep.FAULT_PARTY_AGENT,
        customer=ep.FAULT_PARTY_CUSTOMER,
        tools=ep.FAULT_PARTY_TOOLS,
        budget=ep.FAULT_PARTY_BUDGET,
    )
    judge = FakeJudge()
    await Stage(ledger, judge).run()
    asked = {unit for unit, _ in judge.panels_asked}
    assert asked == set(UNITS) - {ids["customer"], ids["tools"], ids["budget"]}
    assert ids["agent"] in asked


async def test_two_judges_each_judge_everything() -> None:
    ada, eve = FakeJudge("ada"), FakeJudge("eve", described=info("rehearsal-judge-lenient"))
    made = Stage(await complete_run(memory()), ada, eve)
    await made.run()
    assert once_each(ada.panels_asked)
    assert once_each(eve.panels_asked)
    assert set(await judged(made.ledger, "ada")) == set(await judged(made.ledger, "eve")) == ALL


async def test_a_judge_can_be_added_later() -> None:
    ledger = await complete_run(memory())
    await Stage(ledger, FakeJudge("ada")).run()
    eve = FakeJudge("eve")
    plan = await Stage(ledger, eve).run()
    assert (plan.calls, plan.goal_calls) == (48, 0)
    assert once_each(eve.panels_asked)
    assert eve.goals_asked == []
    assert set(await judged(ledger, "ada")) == ALL


# ------------------------------------------------------------------ what fails


async def test_a_failed_panel_is_asked_again_alone() -> None:
    judge = FakeJudge(script=fails(1, ModelServerUnavailable("down"), "talk", unit=UNITS[3]))
    made = Stage(await complete_run(memory()), judge)
    await made.run()
    assert Counter(judge.panels_asked) == Counter(ALL) + Counter([(UNITS[3], "talk")])
    assert set(await judged(made.ledger)) == ALL
    assert made.progress.agents["ada"].retried == 1


@pytest.mark.parametrize("number", [1, 5, 16])
async def test_as_many_failures_as_questions_again(number: int) -> None:
    left = set(UNITS[:number])

    def script(unit: str, panel: str) -> judge_pb2.PanelFailure | None:
        if panel == "policy" and unit in left:
            left.remove(unit)
            return panel_failure(panel, ModelServerUnavailable("down"))
        return None

    judge = FakeJudge(script=script)
    made = Stage(await complete_run(memory()), judge)
    records = {record.unit.unit_id: record async for record in made.ledger.read_records()}
    await made.run()
    assert len(judge.panels_asked) == len(ALL) + number
    assert Counter(judge.panels_asked) - Counter(ALL) == Counter((u, "policy") for u in UNITS[:number])
    assert max((await judged(made.ledger)).values()) == 1
    assert {record.unit.unit_id: record async for record in made.ledger.read_records()} == records


async def test_attempts_are_bounded_and_the_next_run_asks_for_the_rest_alone() -> None:
    ledger = await complete_run(memory())
    broken = FakeJudge(script=fails(10_000, ModelServerGarbled("half an answer"), "talk", unit=UNITS[2]))
    made = Stage(ledger, broken)
    await made.run()
    assert Counter(broken.panels_asked)[UNITS[2], "talk"] == SETTINGS.max_attempts
    assert made.stage.missing == 1
    assert made.stage.failures == {("ada", "MODEL_SERVER_GARBLED"): 1}
    assert made.said == [f"unit {UNITS[2]} lacks verdicts: judge ada, panel talk: half an answer"]
    mended = FakeJudge()
    again = Stage(ledger, mended)
    await again.run()
    assert mended.panels_asked == [(UNITS[2], "talk")]
    assert again.stage.missing == 0


async def test_a_judge_that_refuses_for_ever_fails_alone() -> None:
    def forbidden(unit: str, panel: str) -> PolicysweepError:
        return ModelServerRejected("judge ada: 403 Forbidden")

    ada, eve = FakeJudge("ada", forbidden), FakeJudge("eve")
    ada.goal_script = lambda task: ModelServerRejected("judge ada: 403 Forbidden")
    store = memory()
    made = Stage(await complete_run(store), ada, eve)
    before = {name: await store.read(name) async for name in store.list_names()}
    await made.run()
    assert set(await judged(made.ledger, "eve")) == ALL
    assert await judged(made.ledger, "ada") == Counter()
    assert len(ada.asked) == 16  # one attempt a conversation: repeating cannot mend it
    assert made.stage.failures == {("ada", "MODEL_SERVER_REJECTED"): 16}
    assert made.stage.missing == len(ALL)
    assert len(made.said) == 1  # the others fell to the same cause
    assert {name: await store.read(name) for name in before} == before


async def test_an_outage_is_waited_for_without_using_up_attempts() -> None:
    outage = 40 * [ServiceUnavailable("judge ada cannot be reached")]
    judge = FakeJudge(script=lambda unit, panel: outage.pop() if outage else None)
    made = Stage(await complete_run(memory()), judge)
    await made.run("talk")
    assert len(judge.asked) == 40 + 16
    assert max(Counter(judge.panels_asked).values()) > SETTINGS.max_attempts
    assert made.stage.missing == 0


async def test_an_outage_that_lasts_gives_up_the_judge_and_leaves_the_others_alone() -> None:
    def script(unit: str, panel: str) -> PolicysweepError:
        return ServiceUnavailable("judge ada cannot be reached")

    ada, eve = FakeJudge("ada", script), FakeJudge("eve")
    ada.goal_script = lambda task: ServiceUnavailable("judge ada cannot be reached")
    settings = RunnerSettings(concurrency=2, max_attempts=3, unit_seconds=5.0, outage_seconds=0.0)
    made = Stage(await complete_run(memory()), ada, eve, settings=settings)
    await made.run()
    assert made.backlog.given_up() == ["ada"]
    assert set(await judged(made.ledger, "eve")) == ALL
    assert made.stage.missing == len(ALL)


async def test_a_judge_with_one_broken_panel_gives_all_the_others() -> None:
    """Whoever answers two of three panels is not out."""
    judge = FakeJudge(script=fails(10_000, ModelServerUnavailable("logprobs crash the worker"), "policy"))
    settings = RunnerSettings(concurrency=1, max_attempts=1, unit_seconds=5.0, outage_seconds=0.0)
    made = Stage(await complete_run(memory()), judge, settings=settings)
    await made.run()
    assert set(await judged(made.ledger)) == {pair for pair in ALL if pair[1] != "policy"}
    assert made.stage.failures == {("ada", "MODEL_SERVER_UNAVAILABLE"): 16}
    assert made.backlog.given_up() == []


async def test_a_failure_that_may_pass_decides_over_one_that_cannot() -> None:
    busy = fails(1, ModelServerBusy("later"), "talk")
    rejected = fails(10_000, ModelServerRejected("logprobs are not supported"), "policy")
    judge = FakeJudge(script=lambda unit, panel: busy(unit, panel) or rejected(unit, panel))
    made = Stage(await complete_run(memory()), judge)
    await made.run("policy", "talk")
    assert set(await judged(made.ledger)) == {(unit, "talk") for unit in UNITS}
    assert made.stage.failures == {("ada", "MODEL_SERVER_REJECTED"): 16}


async def test_a_reason_that_we_do_not_know_is_tried_again_where_the_judge_says_so() -> None:
    strange = judge_pb2.PanelFailure(panel="talk", reason="MODEL_ON_FIRE", message="hot", retryable=True)
    seen: Counter[str] = Counter()

    def script(unit: str, panel: str) -> judge_pb2.PanelFailure | None:
        seen[unit] += 1
        return strange if seen[unit] == 1 else None

    made = Stage(await complete_run(memory()), FakeJudge(script=script))
    await made.run("talk")
    assert made.stage.missing == 0
    assert set(seen.values()) == {2}


async def test_a_store_that_refuses_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Stage(await complete_run(memory()), FakeJudge())
    plan = await made.plan()

    async def full(record: run_pb2.VerdictRecord) -> bool:
        raise StoreError("disk full")

    monkeypatch.setattr(made.stage._verdicts, "write", full)
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(made.stage.run(plan), 20)
    assert raised.group_contains(StoreError, match="disk full")


async def test_cancelling_loses_only_what_is_in_flight() -> None:
    ledger = await complete_run(memory())
    kept = asyncio.Event()

    def script(unit: str, panel: str) -> None:
        if len(judge.asked) > 8:
            kept.set()

    judge = FakeJudge(script=script)
    made = Stage(ledger, judge)
    task = asyncio.create_task(made.stage.run(await made.plan()))
    await kept.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = await judged(ledger)
    assert 0 < len(done) < len(ALL)
    rest = FakeJudge()
    await Stage(ledger, rest).run()
    assert Counter(rest.panels_asked) == Counter(ALL) - done


# ------------------------------------------------------------------ answers to another question


def answering(change: Callable[[judge_pb2.JudgeEpisodeResponse], object]) -> FakeJudge:
    class Odd(FakeJudge):
        async def judge(
            self, request: judge_pb2.JudgeEpisodeRequest, seconds: float
        ) -> judge_pb2.JudgeEpisodeResponse:
            response = await super().judge(request, seconds)
            change(response)
            return response

    return Odd()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda response: response.panels.pop(), "was asked for panels policy, talk and answered policy"),
        (lambda response: response.panels.add(panel="../x"), "and answered policy, talk, ../x"),
        (
            lambda response: response.panels.add().CopyFrom(response.panels[0]),
            "answered policy, talk, policy",
        ),
        (
            lambda response: setattr(response.panels[1], "panel_digest", "ab" * 32),
            "judge ada has another text of panel talk than when the judging began: judge the run again",
        ),
    ],
    ids=["left out", "foreign", "twice", "edition"],
)
async def test_an_answer_to_another_question_is_never_kept(
    change: Callable[[judge_pb2.JudgeEpisodeResponse], object], said: str
) -> None:
    made = Stage(await complete_run(memory()), answering(change))
    await made.run("policy", "talk")
    assert await judged(made.ledger) == Counter()
    assert made.stage.failures == {("ada", "SERVICE_CONTRACT"): 16}
    assert said in made.said[0]


# ------------------------------------------------------------------ goals


async def test_goals_are_extracted_once_a_task_for_all_agents_and_judges() -> None:
    judges = [FakeJudge("ada"), FakeJudge("eve"), FakeJudge("ian")]
    settings = RunnerSettings(concurrency=48, max_attempts=3, unit_seconds=5.0, outage_seconds=300.0)
    ledger = await complete_run(memory())
    await Stage(ledger, *judges, settings=settings).run()
    assert sorted(task for judge in judges for task in judge.goals_asked) == ["t0", "t1"]
    given = defaultdict(set)
    for judge in judges:
        for request in judge.asked:
            given[request.scenario.task_id].add(tuple(goal.text for goal in request.goals))
    assert {task: len(texts) for task, texts in given.items()} == {"t0": 1, "t1": 1}
    kept = await ledger.verdicts.read_goals("t0")
    assert kept is not None
    assert given["t0"] == {tuple(goal.text for goal in kept.goals)}
    assert kept.usage.prompt_tokens == 100
    assert (kept.judge_name, kept.judge) == ("ada", info())


async def test_goals_that_cannot_be_had_cost_the_panel_that_needs_them_and_no_other() -> None:
    judge = FakeJudge(goal_script=lambda task: JudgeUnusable("judge ada gave no goals of t0: not JSON"))
    made = Stage(await complete_run(memory()), judge)
    await made.run()
    assert set(await judged(made.ledger)) == {pair for pair in ALL if pair[1] != "interest"}
    # Asking again brings the same answer: it is asked once a task, not once a conversation.
    assert sorted(judge.goals_asked) == ["t0", "t1"]
    assert made.stage.failures == {("ada", "JUDGE_UNUSABLE"): 16}
    assert "judge ada gave no goals of t0" in made.said[0]


async def test_goals_are_tried_again_after_a_fault_that_passes() -> None:
    left = {"t0": 2, "t1": 1}

    def script(task: str) -> PolicysweepError | None:
        left[task] -= 1
        return ModelServerUnavailable("down") if left[task] >= 0 else None

    judge = FakeJudge(goal_script=script)
    made = Stage(await complete_run(memory()), judge)
    await made.run()
    assert set(await judged(made.ledger)) == ALL
    assert Counter(judge.goals_asked) == {"t0": 3, "t1": 2}
    assert once_each(judge.panels_asked)


async def test_a_judge_that_gives_no_goals_does_not_hold_up_another() -> None:
    ada = FakeJudge("ada", goal_script=lambda task: ModelServerRejected("403"))
    eve = FakeJudge("eve")
    made = Stage(await complete_run(memory()), ada, eve)
    await made.run()
    assert set(await judged(made.ledger, "eve")) == ALL
    assert {panel for _, panel in await judged(made.ledger, "ada")} == {"policy", "talk"}
    again = FakeJudge("ada")
    await Stage(made.ledger, again).run()
    assert set(again.panels_asked) == {(unit, "interest") for unit in UNITS}
    assert again.goals_asked == []


# ------------------------------------------------------------------ the rubric


async def test_an_edited_panel_is_judged_again_alone_and_that_is_said() -> None:
    ledger = await complete_run(memory())
    await Stage(ledger, FakeJudge()).run()
    judge = FakeJudge(serves=rubric(talk="other words"))
    plan = await Stage(ledger, judge).run()
    assert Counter(judge.panels_asked) == Counter((unit, "talk") for unit in UNITS)
    changed, cost = plan.describe().splitlines()
    assert changed == (
        "The text of panel talk was changed since the run was judged: the verdicts on the earlier text stay "
        "in the store and do not count."
    )
    assert cost.startswith("Judging 16 conversations by ada: 16 verdicts are missing on talk.")
    assert set(await judged(ledger)) == ALL
    # Back to the earlier text: its verdicts still stand.
    back = FakeJudge()
    plan = await Stage(ledger, back).run()
    assert back.asked == []
    assert plan.describe().splitlines()[1] == "Judging: every verdict is there."
    standing = await ledger.verdicts.read_judging()
    assert standing is not None
    assert standing.rubric == rubric()


async def test_another_rubric_is_said_to_count_from_now_on() -> None:
    ledger = await complete_run(memory())
    earlier = rubric()
    earlier.ref.version = 7
    await ledger.verdicts.begin(await ledger.verdicts.proposed(earlier, {"ada": info()}))
    plan = await Stage(ledger, FakeJudge()).plan()
    assert plan.describe().splitlines()[0] == "small@1 counts from now on, instead of small@7."


async def test_an_unknown_panel_is_refused_with_a_suggestion() -> None:
    made = Stage(await complete_run(memory()), FakeJudge())
    with pytest.raises(InputError, match=r"rubric small@1 has no panel talks; did you mean talk\?"):
        await made.plan("talks")
    with pytest.raises(InputError, match="has no panel x; it has policy, talk, interest"):
        await made.plan("x")


async def test_judges_with_different_texts_are_refused() -> None:
    ada, eve = FakeJudge("ada"), FakeJudge("eve", serves=rubric(talk="other words"))
    made = Stage(await complete_run(memory()), ada, eve)
    with pytest.raises(InputError, match="judges ada and eve have different texts of small@1"):
        await made.plan()


async def test_a_judge_that_changed_is_refused_before_anything_is_asked() -> None:
    ledger = await complete_run(memory())
    await Stage(ledger, FakeJudge()).run("talk")
    changed = FakeJudge(described=info(samples=5))
    with pytest.raises(ManifestMismatch, match=r"judge ada .* samples was 1 and is 5"):
        await Stage(ledger, changed).plan()
    assert changed.asked == []


# ------------------------------------------------------------------ what it costs


def characters(unit: run_pb2.Unit) -> int:
    """What the small run's prompts hold: 1000 of rubric, and its texts."""
    return 1000 + len("Hello")


async def test_the_cost_is_said_in_one_sentence() -> None:
    plan = await Stage(await complete_run(memory()), FakeJudge("ada"), FakeJudge("eve")).plan()
    tokens = 2 * 3 * sum(map(characters, units())) // 4
    assert plan.describe() == (
        "Judging 16 conversations by ada, eve: 96 verdicts are missing on policy, talk, interest. They take "
        f"98 model calls, 2 of them for the goals of tasks, with about {tokens:,} prompt tokens, cached ones "
        "included."
    )
    assert (plan.verdicts, plan.calls, plan.goal_calls) == (96, 98, 2)


async def test_repeated_samples_cost_what_they_cost() -> None:
    ledger = await complete_run(memory())
    for logprobs, per_unit in ((True, 1 + 5 + 5), (False, 5 + 5 + 5)):
        judge = FakeJudge(described=info(samples=5, logprobs=logprobs))
        plan = await Stage(ledger, judge).plan()
        assert plan.calls == 16 * per_unit + 2
        assert plan.prompt_characters == 1005 * 16 * per_unit


async def test_long_policies_and_transcripts_are_counted() -> None:
    ledger = RunLedger(memory())
    played = inputs()
    for scenario in played.scenarios:
        scenario.policy.primary.text = "p" * 5000
        scenario.policy.related.add(text="r" * 300)
        scenario.task.detail = "d" * 70
    await ledger.begin(manifest(), played)
    record = record_of(units()[0])
    record.episode.messages.add(
        role=ep.ROLE_AGENT, tool_calls=[ep.ToolCall(name="find", arguments_json="{}" * 20)]
    )
    await ledger.write_record(record)
    stage = JudgeStage(ledger, played.scenarios, [FakeJudge()], SETTINGS, Progress(), print)
    plan = await stage.plan(REF, ["talk"])
    assert plan.prompt_characters == 1000 + 5000 + 300 + 70 + len("Hello") + 40


# ------------------------------------------------------------------ damaged runs


async def test_a_damaged_record_is_told() -> None:
    store = memory()
    ledger = await complete_run(store)
    await store.replace(f"episodes/{UNITS[0]}.binpb", b"garbage")
    with pytest.raises(StoreError, match=f"the record of unit {UNITS[0]} is damaged: see policysweep verify"):
        await Stage(ledger, FakeJudge()).plan()


async def test_a_record_of_no_scenario_of_the_run_is_told() -> None:
    ledger = await complete_run(memory())
    stray = units()[0]
    stray.unit_id, stray.scenario_id = "f" * 32, "s99"
    await ledger.write_record(record_of(stray))
    with pytest.raises(InputError, match="of scenario s99, which the run does not have"):
        await Stage(ledger, FakeJudge()).plan()
