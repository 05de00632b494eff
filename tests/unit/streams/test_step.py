"""What a task gives to learn from, and what it does not."""

from __future__ import annotations

from policysweep.streams.step import nothing_to_learn, task_query
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, stream_pb2

from .samples import manifest, planned, record


def sound() -> stream_pb2.StreamRecord:
    stream, tasks = planned(manifest())[1]
    return record(stream, tasks[0])


def test_a_graded_task_gives_a_lesson_solved_or_not() -> None:
    made = sound()
    assert nothing_to_learn(made) is None
    made.grade.reward = 0
    made.episode.end.fault = ep.FAULT_PARTY_AGENT
    assert nothing_to_learn(made) is None


def test_without_a_reward_there_is_no_lesson_and_the_judge_is_named() -> None:
    made = sound()
    made.grade.ClearField("reward")
    made.grade.absent_reason = judge_pb2.ABSENT_REASON_UNPARSEABLE
    missing = nothing_to_learn(made)
    assert missing is not None
    assert (missing.party, missing.reason) == (ep.FAULT_PARTY_JUDGE, "UNPARSEABLE")


def test_a_conversation_that_somebody_else_spoilt_teaches_nothing() -> None:
    made = sound()
    made.grade.reward = 0
    made.episode.end.MergeFrom(
        ep.EpisodeEnd(reason=ep.END_REASON_TOKEN_BUDGET, fault=ep.FAULT_PARTY_BUDGET, detail="Used up.")
    )
    missing = nothing_to_learn(made)
    assert missing is not None
    assert (missing.party, missing.reason, missing.message) == (
        ep.FAULT_PARTY_BUDGET,
        "TOKEN_BUDGET",
        "Used up.",
    )


def test_a_task_is_remembered_by_the_customers_first_words() -> None:
    episode = ep.Episode(
        messages=[
            ep.Message(role=ep.ROLE_AGENT, content="Hi!"),
            ep.Message(role=ep.ROLE_CUSTOMER, content=" "),
            ep.Message(role=ep.ROLE_CUSTOMER, content="Cancel it."),
            ep.Message(role=ep.ROLE_CUSTOMER, content="Now."),
        ]
    )
    assert task_query(episode) == "Cancel it."
    assert task_query(ep.Episode()) == "The customer said nothing."
