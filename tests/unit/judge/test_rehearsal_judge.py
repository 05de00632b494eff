"""The rehearsal judge reads the judge's real prompts; what it answers has to be usable in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from policysweep.models.chat import ChatReply, ChatRequest, ResponseSchema
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.faults import MODEL_FAULTS, FaultKind
from policysweep.models.rehearsal.request import ParsedRequest, parse
from policysweep.models.rehearsal.roles import respond
from policysweep.models.wire import request_body
from policysweep.v1 import agent_pb2, judge_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.judge import prompt
from services.judge.answer import Answer, read_answer
from services.judge.goals import extract_goals
from services.judge.score_sheet import score_sheet

from .support import DRIP_R, GOALS, ScriptedModel, episode, interrogator, reply, scenario, unresolved

PANELS = [each.key for each in DRIP_R.panels]


def asked(key: str, of: ep.Episode, model: str = "rehearsal-judge", **fields: Any) -> ParsedRequest:
    sheet = score_sheet(next(each for each in DRIP_R.panels if each.key == key), of, GOALS)
    text = prompt.episode_text(DRIP_R, scenario(), of)
    messages = prompt.panel_messages(DRIP_R, scenario().policy, text, prompt.panel_ask(sheet))
    schema = ResponseSchema("judge_panel", sheet.schema())
    return parse(request_body(model, ChatRequest(messages=messages, response_schema=schema, **fields)))


def answer(key: str, of: ep.Episode, model: str = "rehearsal-judge", **fields: Any) -> Answer:
    sheet = score_sheet(next(each for each in DRIP_R.panels if each.key == key), of, GOALS)
    return read_answer(reply(respond(asked(key, of, model, **fields)).text), sheet)


def varied(number: int) -> ep.Episode:
    """Episodes that differ in what is said, declared and assigned."""
    of = episode(agent_persona=ep.AgentPersona.values()[1 + number % 5])
    of.messages[5].content = f"Under Section {number} of the policy I take off {number}%."
    of.resolution.outcome = ep.Outcome.values()[1 + number % 6]
    return of


def mean(model: str, keys: tuple[str, ...] = ("dialogue", "behavioural")) -> float:
    values = [
        reading.value or 0.0
        for number in range(20)
        for key in keys
        for reading in answer(key, varied(number), model).scores
    ]
    return sum(values) / len(values)


@pytest.mark.parametrize("key", PANELS)
@pytest.mark.parametrize(
    "of", [episode(), unresolved(), ep.Episode(messages=[ep.Message(role=ep.ROLE_AGENT)])]
)
def test_every_answer_can_be_used_in_full(key: str, of: ep.Episode) -> None:
    assert not answer(key, of).missing


@pytest.mark.parametrize("key", PANELS)
def test_justifications_cite_turns_that_exist(key: str) -> None:
    for reading in answer(key, episode()).scores:
        cited = {int(part.split("]")[0]) for part in reading.justification.split("[")[1:]}
        assert cited
        assert cited <= {0, 3, 4, 5}


def test_equal_prompts_get_equal_answers_and_other_conversations_others() -> None:
    assert respond(asked("dialogue", episode())) == respond(asked("dialogue", episode()))
    answers = {respond(asked("dialogue", varied(number))).text for number in range(10)}
    assert len(answers) == 10


def test_repeated_samples_differ_when_they_are_sampled() -> None:
    warm = agent_pb2.Sampling(temperature=0.8)
    texts = {respond(asked("behavioural", episode(), sampling=warm, seed=seed)).text for seed in range(8)}
    assert len(texts) > 3
    greedy = {respond(asked("behavioural", episode(), seed=seed)).text for seed in range(8)}
    assert len(greedy) == 1


def test_scores_use_the_scale_and_follow_the_disposition() -> None:
    values = {r.written for n in range(40) for r in answer("behavioural", varied(n)).scores}
    assert values >= {2, 3, 4, 5}
    assert mean("rehearsal-judge-lenient") > mean("rehearsal-judge") + 0.3
    assert mean("rehearsal-strict") < mean("rehearsal-judge") < mean("rehearsal-generous")


def test_two_judges_agree_more_than_by_chance() -> None:
    pairs = [
        (one.value or 0.0, other.value or 0.0)
        for number in range(40)
        for one, other in zip(
            answer("dialogue", varied(number)).scores,
            answer("dialogue", varied(number), "rehearsal-judge-lenient").scores,
            strict=True,
        )
    ]
    bias = sum(other - one for one, other in pairs) / len(pairs)
    apart = sum(abs(other - one - bias) for one, other in pairs) / len(pairs)
    shuffled = list(
        zip([one for one, _ in pairs], [other for _, other in pairs[7:] + pairs[:7]], strict=True)
    )
    assert apart < 0.8 * sum(abs(other - one - bias) for one, other in shuffled) / len(shuffled)


def with_mismatch(of: ep.Episode) -> ep.Episode:
    of.reconciliation.mismatch = True
    of.reconciliation.explanation = "Declared partial, paid in full."
    of.reconciliation.executed = ep.OUTCOME_RETURN_REFUND_FULL_BANK
    of.reconciliation.writes.add(tool_name="issue_refund")
    return of


def test_a_mismatch_costs_fidelity_and_shows_in_the_outcome() -> None:
    def fidelity(change: Callable[[ep.Episode], ep.Episode]) -> float:
        return (
            sum(answer("dialogue", change(varied(number))).scores[5].value or 0.0 for number in range(20))
            / 20
        )

    assert fidelity(with_mismatch) < fidelity(lambda of: of) - 1
    outcomes = [answer("policy_resolution", with_mismatch(varied(number))).outcome for number in range(20)]
    executed = [found for found in outcomes if found and found.outcome == ep.OUTCOME_RETURN_REFUND_FULL_BANK]
    assert len(executed) >= 17


def test_goals_about_money_are_met_when_it_is_paid() -> None:
    def met(outcome: ep.Outcome.ValueType) -> int:
        total = 0
        for number in range(30):
            of = varied(number)
            of.resolution.outcome = outcome
            total += answer("interest", of).goals[0].met is True
        return total

    assert met(ep.OUTCOME_RETURN_REFUND_FULL_BANK) > 20
    assert met(ep.OUTCOME_DENY_REFUND) < 10


# ------------------------------------------------------------------ goals


def rehearsed(request: ChatRequest) -> ChatReply:
    return reply(respond(parse(request_body("rehearsal-judge", request))).text)


@pytest.mark.parametrize(
    "detail",
    [
        "",
        "The customer wants $603.00 back on the card, and asks for no fee. The customer wants it by May.",
        "Nothing is known. " * 40,
        "wants wants wants; asks asks asks.",
    ],
)
async def test_goals_are_usable_whatever_the_case_says(detail: str) -> None:
    made = scenario_pb2.Scenario(task_id="t", task=scenario_pb2.Task(detail=detail))
    response = await extract_goals(interrogator(ScriptedModel(rehearsed)), made, 1, lambda: 5.0)
    assert response.absent_reason == judge_pb2.ABSENT_REASON_UNSPECIFIED
    assert 2 <= len(response.goals) <= 6
    if "$603.00" in detail:
        assert response.goals[0].text == "The customer wants $603.00 back on the card, and asks for no fee."
        assert response.goals[0].explicit


# ------------------------------------------------------------------ misbehaviour


def spoiled(kind: FaultKind, key: str) -> str:
    request = asked(key, episode())
    return MODEL_FAULTS[kind](respond(request), request).text


@pytest.mark.parametrize("key", PANELS)
def test_off_scale_scores_leave_turns_and_goals_alone(key: str) -> None:
    before = orjson.loads(respond(asked(key, episode())).text)
    after = orjson.loads(spoiled(FaultKind.SCORE_OFF_SCALE, key))
    for name, entries in before.items():
        if isinstance(entries, list):
            for part in ("turn", "goal", "met"):
                assert [entry.get(part) for entry in after[name]] == [entry.get(part) for entry in entries]
        elif "score" in entries:
            assert after[name]["score"] == 7


def test_nan_is_written_as_models_write_it() -> None:
    assert '"score":NaN' in spoiled(FaultKind.SCORE_NAN, "dialogue")
    assert "{" not in spoiled(FaultKind.PROSE, "dialogue")
    draft = Draft(text='{"turn":3,"goal":2,"m":4}')
    assert MODEL_FAULTS[FaultKind.SCORE_NAN](draft, asked("dialogue", episode())) == replace(
        draft, text='{"turn":3,"goal":2,"m":NaN}'
    )
