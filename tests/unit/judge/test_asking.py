from __future__ import annotations

import pytest

from policysweep.errors import (
    ContextOverflow,
    ModelServerBusy,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerUnavailable,
    PolicysweepError,
)
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.score_sheet import TURN_LISTS

from .support import (
    GOALS,
    ScriptedModel,
    answer_to,
    answering,
    interrogator,
    judged,
    panel_of,
    reply,
    sheet,
    tokens,
    unresolved,
)

DIALOGUE = sheet("dialogue")
GOOD = reply(answer_to(DIALOGUE))
PROSE = reply("The agent did well.")


# ------------------------------------------------------------------ retries of unusable answers


async def test_a_good_answer_is_asked_for_once() -> None:
    model = ScriptedModel(GOOD)
    (verdict,) = (await judged(model, "dialogue")).panels
    assert len(model.requests) == 1
    assert verdict.unusable_answers == 0
    assert verdict.usage == ep.Usage(
        prompt_tokens=100, completion_tokens=20, latency_seconds=0.5, model_calls=1
    )


async def test_a_number_that_one_call_does_not_report_hides_no_other() -> None:
    silent = reply("no JSON", usage=ep.Usage(latency_seconds=0.25, model_calls=1))
    (verdict,) = (await judged(ScriptedModel(silent, GOOD), "dialogue")).panels
    assert verdict.usage == ep.Usage(
        prompt_tokens=100, completion_tokens=20, latency_seconds=0.75, model_calls=2
    )
    (verdict,) = (await judged(ScriptedModel(silent), "dialogue")).panels
    assert not verdict.usage.HasField("prompt_tokens")
    assert verdict.usage.model_calls == 2


async def test_an_unusable_answer_is_asked_for_again_with_another_seed_and_a_word_on_why() -> None:
    model = ScriptedModel(PROSE, GOOD)
    (verdict,) = (await judged(model, "dialogue")).panels
    first, second = model.requests
    assert all(score.value == 4.0 for score in verdict.scores)
    assert verdict.unusable_answers == 1
    assert verdict.usage.model_calls == 2
    assert verdict.usage.prompt_tokens == 200
    assert first.seed != second.seed
    added = str(second.messages[1]["content"]).removeprefix(str(first.messages[1]["content"]))
    assert added == (
        "\n\nAn earlier answer could not be used (unparseable). Answer anew, with the JSON object alone."
    )


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_calls_on_the_wire_equal_the_configured_number(attempts: int) -> None:
    model = ScriptedModel(PROSE)
    (verdict,) = (await judged(model, "dialogue", parse_attempts=attempts)).panels
    assert len(model.requests) == verdict.usage.model_calls == verdict.unusable_answers == attempts
    assert len({request.seed for request in model.requests}) == attempts
    assert {score.absent_reason for score in verdict.scores} == {judge_pb2.ABSENT_REASON_UNPARSEABLE}


async def test_the_answer_that_has_most_is_kept() -> None:
    content = answer_to(DIALOGUE, 2)
    content["verbosity"]["score"] = 9
    model = ScriptedModel(reply(content), PROSE)
    (verdict,) = (await judged(model, "dialogue")).panels
    values = [score.value for score in verdict.scores if score.HasField("value")]
    assert values == [2.0] * 5
    assert verdict.unusable_answers == 2


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (reply("{", finish_reason=ep.FINISH_REASON_LENGTH), judge_pb2.ABSENT_REASON_TRUNCATED),
        (reply("", finish_reason=ep.FINISH_REASON_CONTENT_FILTER), judge_pb2.ABSENT_REASON_REFUSED),
        (reply("I'm sorry, I can't help with that."), judge_pb2.ABSENT_REASON_REFUSED),
        (reply(""), judge_pb2.ABSENT_REASON_UNPARSEABLE),
    ],
)
async def test_a_judge_that_never_answers_leaves_scores_absent_with_the_reason(
    bad: ChatReply, reason: int
) -> None:
    response = await judged(ScriptedModel(bad))
    assert not response.failures
    assert len(response.panels) == 5
    found = [score for verdict in response.panels for score in verdict.scores]
    assert {score.absent_reason for score in found} == {reason}
    assert not any(score.HasField("value") for score in found)
    assert response.panels[0].outcome.absent_reason == reason
    assert {goal.absent_reason for goal in response.panels[4].goals} == {reason}


async def test_a_prompt_that_does_not_fit_is_tried_once_and_is_a_result() -> None:
    model = ScriptedModel(ContextOverflow("maximum context length is 8192 tokens"))
    (verdict,) = (await judged(model, "dialogue")).panels
    assert len(model.requests) == 1
    assert {score.absent_reason for score in verdict.scores} == {judge_pb2.ABSENT_REASON_CONTEXT_OVERFLOW}
    assert (verdict.unusable_answers, verdict.usage.model_calls) == (1, 1)


async def test_a_prompt_that_was_not_sent_is_no_answer_and_no_call() -> None:
    (verdict,) = (await judged(ScriptedModel(ContextOverflow("not sent", sent=False)), "dialogue")).panels
    assert {score.absent_reason for score in verdict.scores} == {judge_pb2.ABSENT_REASON_CONTEXT_OVERFLOW}
    assert (verdict.unusable_answers, verdict.usage.model_calls) == (0, 0)


async def test_nothing_to_ask_is_not_asked() -> None:
    model = ScriptedModel(GOOD)
    silent = ep.Episode(scenario_id="s-1", messages=[ep.Message(role=ep.ROLE_TOOL, content="{}")])
    (verdict,) = (await judged(model, "turn_level", of=silent)).panels
    assert not model.requests
    assert verdict.usage.model_calls == 0
    assert {score.absent_reason for score in verdict.scores} == {judge_pb2.ABSENT_REASON_NOT_APPLICABLE}


# ------------------------------------------------------------------ panels apart from one another


def failing(*panels: str, error: PolicysweepError) -> ScriptedModel:
    def answer(request: ChatRequest) -> ChatReply:
        if panel_of(request) in panels:
            raise error
        return answering(request)

    return ScriptedModel(answer)


async def test_panels_are_asked_at_the_same_time_under_one_session() -> None:
    model = ScriptedModel(answering)
    response = await judged(model)
    assert [verdict.panel for verdict in response.panels] == [
        "policy_resolution",
        "dialogue",
        "behavioural",
        "turn_level",
        "interest",
    ]
    assert {request.session_id for request in model.requests} == {"e-1-judge"}
    assert sum(len(verdict.scores) for verdict in response.panels) == 22 + 2 * 3 + 2 * 2


@pytest.mark.parametrize(
    "error",
    [
        ModelServerRejected("the model server answered 403: no"),
        ModelServerUnavailable("reset"),
        ModelServerGarbled("half a JSON object"),
        ModelServerBusy("429", retry_after=7.0),
    ],
)
async def test_the_failed_panels_alone_are_named_and_not_asked_again(error: PolicysweepError) -> None:
    model = failing("dialogue", "interest", error=error)
    response = await judged(model)
    assert len(model.requests) == 5
    assert [verdict.panel for verdict in response.panels] == [
        "policy_resolution",
        "behavioural",
        "turn_level",
    ]
    assert [failure.panel for failure in response.failures] == ["dialogue", "interest"]
    failure = response.failures[0]
    assert (failure.reason, failure.message) == (error.reason, str(error))
    assert failure.retryable == error.retryable
    assert failure.party == ep.FAULT_PARTY_INFRASTRUCTURE
    assert failure.HasField("retry_after_seconds") == (error.retry_after is not None)


async def test_when_all_panels_fail_the_call_fails_with_their_error() -> None:
    with pytest.raises(ModelServerUnavailable, match="reset"):
        await judged(ScriptedModel(ModelServerUnavailable("reset")))


async def test_a_fault_in_a_later_attempt_is_no_verdict() -> None:
    model = ScriptedModel(PROSE, ModelServerUnavailable("reset"))
    with pytest.raises(ModelServerUnavailable):
        await judged(model, "dialogue")
    assert len(model.requests) == 2


# ------------------------------------------------------------------ samples and probabilities


async def test_samples_use_different_seeds() -> None:
    model = ScriptedModel(PROSE, GOOD)
    (verdict,) = (await judged(model, "dialogue", samples=3)).panels
    assert len(model.requests) == 4
    assert len({request.seed for request in model.requests}) == 4
    assert {score.samples for score in verdict.scores} == {3}
    assert {score.spread for score in verdict.scores} == {0.0}


async def test_a_failing_sample_fails_the_panel() -> None:
    with pytest.raises(ModelServerUnavailable):
        await judged(ScriptedModel(GOOD, ModelServerUnavailable("reset")), "dialogue", samples=3)


def with_logprobs(request: ChatRequest) -> ChatReply:
    answer = reply(answer_to(sheet("policy_resolution"))) if panel_of(request) else reply({"score": 3})
    if not request.top_logprobs:
        return answer
    cut = answer.text.split("4") if "4" in answer.text else [answer.text]
    pieces = [piece for text in cut for piece in (text, "4")][:-1]
    at = {index: {"4": -0.6931, "2": -0.6931} for index, piece in enumerate(pieces) if piece == "4"}
    return reply(answer.text, logprobs=tokens(*pieces, at=at))


async def test_a_weighted_panel_asks_for_probabilities_and_takes_one_sample() -> None:
    model = ScriptedModel(with_logprobs)
    (verdict,) = (await judged(model, "policy_resolution", use_logprobs="on", samples=5)).panels
    assert [request.top_logprobs for request in model.requests] == [5]
    for score in verdict.scores:
        assert score.value == pytest.approx(3.0)
        assert score.scale_mass == pytest.approx(1.0, abs=1e-3)
        assert score.written == 4
        assert score.samples == 1


async def test_panels_that_are_not_weighted_ask_for_none() -> None:
    model = ScriptedModel(answering)
    await judged(model, "dialogue", "interest", use_logprobs="auto")
    assert [request.top_logprobs for request in model.requests] == [0, 0]


async def test_auto_asks_the_server_once() -> None:
    model = ScriptedModel(with_logprobs)
    asker = interrogator(model, use_logprobs="auto")
    assert await asker.uses_logprobs(5.0)
    assert await asker.uses_logprobs(5.0)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "script", [(reply({"score": 3}),), (ModelServerRejected("400: no logprobs"), reply({"score": 3}))]
)
async def test_a_server_without_probabilities_is_found_out(
    script: tuple[ChatReply | PolicysweepError],
) -> None:
    model = ScriptedModel(*script)
    asker = interrogator(model, use_logprobs="auto")
    assert not await asker.uses_logprobs(5.0)
    assert len(model.requests) == len(script)
    assert model.requests[-1].top_logprobs == (0 if len(script) == 2 else 5)


async def test_a_server_that_rejects_everything_is_not_taken_for_one_without_probabilities() -> None:
    with pytest.raises(ModelServerRejected, match="401"):
        await interrogator(ScriptedModel(ModelServerRejected("401")), use_logprobs="auto").uses_logprobs(5.0)


async def test_an_answer_that_lacks_the_promised_probabilities_stands_unweighted() -> None:
    model = ScriptedModel(answering)
    (verdict,) = (await judged(model, "policy_resolution", use_logprobs="on")).panels
    assert {score.value for score in verdict.scores} == {4.0}
    assert not any(score.HasField("scale_mass") for score in verdict.scores)


async def test_rehearsal_is_marked() -> None:
    (plain,) = (await judged(ScriptedModel(GOOD), "dialogue")).panels
    marked = reply(answer_to(DIALOGUE), rehearsal=True)
    (rehearsed,) = (await judged(ScriptedModel(marked), "dialogue")).panels
    assert (plain.rehearsal, rehearsed.rehearsal) == (False, True)


async def test_the_schema_asks_for_what_applies_and_stays_simple() -> None:
    model = ScriptedModel(reply({}))
    await judged(model, of=unresolved(), parse_attempts=1)
    schemas = {panel_of(r): r.response_schema.schema for r in model.requests if r.response_schema}
    assert "reasoning_quality" not in schemas["policy_resolution"]["properties"]
    assert list(schemas["dialogue"]["properties"]) == [
        "conversation_consistency",
        "resolution_oriented_responses",
        "verbosity",
    ]
    entry = schemas["dialogue"]["properties"]["verbosity"]
    assert list(entry["properties"]) == ["justification", "score"]
    assert entry["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    turns = schemas["turn_level"]["properties"]
    assert (turns["agent_turns"]["minItems"], turns["agent_turns"]["maxItems"]) == (1, 1)
    of = sheet("turn_level", unresolved())
    for side, name in TURN_LISTS.items():
        number = turns[name]["items"]["properties"]["turn"]
        assert number == {"type": "integer", "enum": list(of.turns[side])}
    goal = schemas["interest"]["properties"]["goals"]["items"]["properties"]["goal"]
    assert goal == {"type": "integer", "enum": list(range(1, len(GOALS) + 1))}
    for word in ("$ref", "pattern", "anyOf", "oneOf", "format"):
        assert word not in str(schemas)
