from __future__ import annotations

from typing import Any

import pytest

from policysweep.errors import ContextOverflow, ModelServerUnavailable
from policysweep.v1 import judge_pb2
from services.judge.goals import extract_goals, read_goals

from .support import ScriptedModel, interrogator, reply, scenario

GOOD = {
    "goals": [{"goal": "Money  back\non the card.", "explicit": True}, {"goal": "No fee.", "explicit": False}]
}


async def extracted(model: ScriptedModel, **settings: Any) -> judge_pb2.ExtractGoalsResponse:
    return await extract_goals(interrogator(model, **settings), scenario(), 3, lambda: 5.0)


async def test_goals_are_read_in_order_each_on_one_line() -> None:
    model = ScriptedModel(reply(GOOD))
    response = await extracted(model)
    assert [(goal.text, goal.explicit) for goal in response.goals] == [
        ("Money back on the card.", True),
        ("No fee.", False),
    ]
    assert response.usage.model_calls == 1
    assert response.absent_reason == judge_pb2.ABSENT_REASON_UNSPECIFIED
    assert model.requests[0].session_id == "task_1-goals"
    assert model.requests[0].top_logprobs == 0


@pytest.mark.parametrize(
    "content",
    [
        {"goals": [GOOD["goals"][0]]},
        {"goals": [{"goal": f"Goal {n}", "explicit": True} for n in range(9)]},
        {"goals": "money"},
        {},
        {"goals": [GOOD["goals"][0], {"goal": "No fee.", "explicit": "no"}]},
        {"goals": [GOOD["goals"][0], {"goal": "  ", "explicit": True}]},
        {"goals": [GOOD["goals"][0], "No fee."]},
        {"goals": [GOOD["goals"][1], {"goal": "no  FEE.", "explicit": True}]},
        "no JSON",
    ],
)
def test_a_list_that_is_not_usable_as_a_whole_is_none(content: Any) -> None:
    found = read_goals(reply(content))
    assert not found.goals
    assert [absent.reason for absent in found.missing] == [judge_pb2.ABSENT_REASON_UNPARSEABLE]


async def test_it_is_asked_for_again_and_the_reason_is_told_in_the_end() -> None:
    response = await extracted(ScriptedModel(reply({"goals": []}), reply(GOOD)))
    assert (len(response.goals), response.unusable_answers, response.usage.model_calls) == (2, 1, 2)
    response = await extracted(ScriptedModel(reply({"goals": []})))
    assert not response.goals
    assert response.absent_reason == judge_pb2.ABSENT_REASON_UNPARSEABLE
    assert response.absent_detail == "0 goals instead of 2 to 8"
    assert response.unusable_answers == 2


async def test_faults_of_the_server_are_errors_and_an_overflow_is_a_result() -> None:
    with pytest.raises(ModelServerUnavailable):
        await extracted(ScriptedModel(ModelServerUnavailable("reset")))
    response = await extracted(ScriptedModel(ContextOverflow("too long")))
    assert response.absent_reason == judge_pb2.ABSENT_REASON_CONTEXT_OVERFLOW
