"""The reward beyond the package's evaluator: spellings, strictness, what is vacuous, what is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from policysweep.datasets.tau2 import load_tau2
from policysweep.domains.tau2 import Domain, load_domain
from policysweep.domains.tau2.package import module
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, tau2_pb2
from services.judge.tau2_replay import made_calls, replay_calls
from services.judge.tau2_reward import (
    ACTION,
    COMMUNICATE,
    DB,
    ENV_ASSERTION,
    NL_ASSERTION,
    grade,
    wants_assertions,
)

from .support import call, needs_tau2
from .trajectories import LIMIT, Plot, episode, plot

pytestmark = needs_tau2


def airline() -> Domain:
    return load_domain("airline")


def task(task_id: str = "2-1", domain: str = "airline", **criteria: Any) -> tau2_pb2.Tau2Task:
    """A copy of a task, its criteria changed."""
    found = tau2_pb2.Tau2Task()
    found.CopyFrom(load_tau2(domain).task(task_id))
    for name, value in criteria.items():
        found.criteria.ClearField(name)  # type: ignore[arg-type]  # the caller names a field
        getattr(found.criteria, name).extend(value)
    return found


def graded(a_task: tau2_pb2.Tau2Task, told: Plot) -> judge_pb2.Tau2Grade:
    domain = load_domain(a_task.domain)
    return grade(a_task, episode(a_task, domain, told), domain)


def values(found: judge_pb2.Tau2Grade) -> dict[int, tuple[float | None, bool, bool]]:
    """Value, in the basis, vacuous, by criterion."""
    return {
        each.criterion: (each.value if each.HasField("value") else None, each.in_basis, each.vacuous)
        for each in found.criteria
    }


# ------------------------------------------------------------------ database


@pytest.mark.parametrize("amount", [50, 50.0, "50", "50.0"])
def test_one_amount_in_every_spelling_is_one_grade(amount: object) -> None:
    told = plot(task())
    told.calls[-1] = ("send_certificate", {"user_id": "noah_muller_9847", "amount": amount})
    found = graded(task(), told)
    assert found.reward == 1.0
    assert all(check.matched for check in found.actions)


def test_an_extra_read_changes_nothing() -> None:
    told = plot(task())
    told.calls.insert(
        1, ("search_direct_flight", {"origin": "SFO", "destination": "JFK", "date": "2024-05-20"})
    )
    found = graded(task(), told)
    assert found.reward == 1.0
    assert found.database_hash == found.gold_database_hash


def test_a_wrong_amount_is_seen() -> None:
    told = plot(task())
    told.calls[-1] = ("send_certificate", {"user_id": "noah_muller_9847", "amount": 51})
    found = graded(task(), told)
    assert found.reward == 0.0
    assert found.database_hash != found.gold_database_hash
    assert [check.matched for check in found.actions] == [True, True, True, False]


def test_gold_actions_that_fail_are_shown() -> None:
    broken = task()
    broken.criteria.gold.actions[1].arguments_json = '{"reservation_id": "NONE"}'
    broken.criteria.gold.actions.add(action_id="x", requestor=ep.ROLE_AGENT, name="no_such_tool")
    found = graded(broken, plot(task()))
    assert [check.replay_error for check in found.actions] == [
        "",
        "Error: Reservation NONE not found",
        "",
        "",
        "Error: Tool 'no_such_tool' not found.",
    ]
    assert found.reward == 1.0  # as in tau2-bench: the database is what it should be


def test_a_call_that_was_not_executed_is_not_replayed() -> None:
    """The episode ended before the tool answered."""
    domain = airline()
    played = episode(task(), domain, plot(task()))
    del played.messages[-2:]
    played.end.reason = ep.END_REASON_TOOL_FAULT
    assert [made.call.name for made in made_calls(played)][-1] == "get_flight_status"
    assert grade(task(), played, domain).reward == 0.0


def test_a_result_without_its_call_is_refused() -> None:
    played = episode(task(), airline(), plot(task()))
    played.messages[3].tool_call_id = "other"
    with pytest.raises(
        InputError, match=r"episode\.messages\[3\] is a tool result for 'other', which is not"
    ):
        grade(task(), played, airline())


def test_an_episode_that_does_not_replay_is_refused() -> None:
    played = episode(task(), airline(), plot(task()))
    written = [message for message in played.messages if message.tool_name == "send_certificate"]
    written[0].content = "Certificate certificate_1 added."
    with pytest.raises(
        InputError, match=r"send_certificate answered 'Certificate certificate_1 added\.', and"
    ):
        grade(task(), played, airline())


def test_results_are_compared_as_values() -> None:
    control = task("44-1")
    played = episode(control, airline(), plot(control))
    written = [message for message in played.messages if message.tool_name == "cancel_reservation"]
    written[0].content = json.dumps(json.loads(written[0].content), indent=2)
    assert grade(control, played, airline()).reward == 1.0


def test_malformed_and_unknown_calls_are_part_of_it() -> None:
    domain = airline()
    played = episode(task(), domain, plot(task()))
    world = domain.world()
    for made in (call("send_certificate", "{", call_id="m"), call("drop_table", {}, call_id="u")):
        answer = world.call(made).content
        played.messages.insert(2, ep.Message(role=ep.ROLE_TOOL, content=answer, tool_call_id=made.id))
        played.messages.insert(2, ep.Message(role=ep.ROLE_AGENT, tool_calls=[made]))
    assert grade(task(), played, domain).reward == 1.0


def test_private_calls_are_replayed_in_their_place() -> None:
    """In a domain with customer tools: here the package's telecom."""
    domain = Domain(module("tau2.domains.telecom.environment").get_environment())
    world = domain.world()
    toggled, looked = call("toggle_airplane_mode", call_id="p"), call("check_network_status", call_id="q")
    events = [
        ep.CustomerToolEvent(
            after_message=after, call=made, result_json=world.call(made, ep.ROLE_CUSTOMER).content
        )
        for after, made in ((1, toggled), (2, looked))
    ]
    agent_call = call("get_details_by_id", {"id": "C1001"}, call_id="a")
    played = ep.Episode(
        customer_tool_events=events,
        messages=[
            ep.Message(role=ep.ROLE_AGENT, content="Hello."),
            ep.Message(role=ep.ROLE_AGENT, tool_calls=[agent_call]),
            ep.Message(role=ep.ROLE_TOOL, tool_call_id="a", content=world.call(agent_call).content),
        ],
    )
    calls = list(made_calls(played))
    assert [made.call.id for made in calls] == ["p", "q", "a"]
    assert replay_calls(domain, calls).hashes == world.hashes() != domain.world().hashes()


# ------------------------------------------------------------------ information


@pytest.mark.parametrize(
    ("info", "said", "met", "strictly"),
    [
        ("1628", "In total $1,628.", True, True),
        ("1628", "In total $1,628.00.", True, True),
        ("1628", "In total 16280.", True, False),
        ("1628", "In total 21628 points.", True, False),
        ("1628", "In total 1628.50.", True, False),
        ("10", "Between 5 and 10.", True, True),
        ("10", "There are 105 of them.", True, False),
        ("10", "There are ten.", False, False),
        ("481.50", "That is $481.5.", False, True),
        ("20 hours", "It runs 20 hours.", True, True),
        ("20 hours", "It runs 120 hours.", True, False),
        ("IL", "943 Maple Drive, Chicago, IL 60621", True, True),
        ("IL", "It is still on its way.", True, False),
        ("943 Maple Drive", "943 maple drive", True, True),
        ("64GB", "The 64 GB one.", False, True),
        ("Mastercard", "by MASTERCARD", True, True),
    ],
)
def test_information_by_both_rules(info: str, said: str, met: bool, strictly: bool) -> None:
    told = plot(task())
    told.closing = said
    found = graded(task(communicate_info=[info]), told)
    (check,) = found.information
    assert (check.met, check.met_strictly) == (met, strictly)
    assert (found.reward, found.strict_reward) == (float(met), float(strictly))


def test_text_that_the_customer_did_not_read_counts_by_tau2_benchs_rule_only() -> None:
    told = plot(task())
    told.beside, told.closing = "It is 1628.", "Done."
    (check,) = graded(task(communicate_info=["1628"]), told).information
    assert (check.met, check.met_strictly, check.message_index) == (True, False, 2)


def test_what_the_customer_says_does_not_count() -> None:
    a_task = task(communicate_info=["1628"])
    played = episode(a_task, airline(), plot(task()))
    played.messages[1].content = "I paid 1628."
    (check,) = grade(a_task, played, airline()).information
    assert not check.met
    assert not check.HasField("message_index")


# ------------------------------------------------------------------ basis and product


def test_an_unspecified_basis_is_db_and_communicate_and_vacuous_criteria_are_told() -> None:
    found = graded(task(reward_basis=[]), plot(task()))
    assert values(found) == {
        DB: (1.0, True, False),
        COMMUNICATE: (1.0, True, True),
        ACTION: (1.0, False, False),
        NL_ASSERTION: (None, False, False),
    }


def test_a_basis_of_nothing_but_vacuous_criteria_is_told() -> None:
    nothing = task(
        reward_basis=[DB, COMMUNICATE, ACTION, NL_ASSERTION, ENV_ASSERTION],
        communicate_info=[],
        nl_assertions=[],
    )
    nothing.criteria.ClearField("gold")
    found = graded(nothing, plot(task()))
    assert found.reward == 1.0
    assert set(values(found).values()) == {(1.0, True, True)}
    assert len(found.criteria) == 5
    assert not found.gold_database_hash


def test_no_gold_actions_means_that_nothing_may_change() -> None:
    untouched = task()
    del untouched.criteria.gold.actions[:]
    assert values(graded(untouched, plot(untouched)))[DB] == (1.0, True, False)
    assert graded(untouched, plot(task())).reward == 0.0


@pytest.mark.parametrize(
    "end", [LIMIT, ep.END_REASON_ERROR_LIMIT, ep.END_REASON_CONTEXT_OVERFLOW, ep.END_REASON_UNSPECIFIED]
)
def test_an_end_that_nobody_chose_is_worth_nothing(end: ep.EndReason.ValueType) -> None:
    told = plot(task())
    told.end = end
    found = graded(task(), told)
    assert (found.reward, found.ended_by_participant) == (0.0, False)
    assert values(found)[DB][0] == 1.0  # the diagnosis stays


def said(*met: bool | None) -> Sequence[judge_pb2.Tau2AssertionCheck]:
    return [
        judge_pb2.Tau2AssertionCheck(
            assertion=str(number),
            met=each,
            absent_reason=judge_pb2.ABSENT_REASON_TRUNCATED
            if each is None
            else judge_pb2.ABSENT_REASON_UNSPECIFIED,
        )
        for number, each in enumerate(met)
    ]


@pytest.mark.parametrize(
    ("assertions", "reward"),
    [((True, True), 1.0), ((True, False), 0.0), ((None, False), 0.0), ((True, None), None), ((), None)],
)
def test_assertions_are_a_factor(assertions: Sequence[bool | None], reward: float | None) -> None:
    judged = task(reward_basis=[DB, NL_ASSERTION], nl_assertions=["a", "b"])
    found = grade(judged, episode(judged, airline(), plot(judged)), airline(), said(*assertions))
    assert (found.reward if found.HasField("reward") else None) == reward
    assert found.HasField("strict_reward") == (reward is not None)
    if reward is None:
        wanted = judge_pb2.ABSENT_REASON_TRUNCATED if assertions else judge_pb2.ABSENT_REASON_NOT_APPLICABLE
        assert found.absent_reason == wanted


def test_what_a_judge_would_say_does_not_matter_to_a_reward_of_nothing() -> None:
    judged = task(reward_basis=[DB, NL_ASSERTION], nl_assertions=["a", "b"])
    told = plot(judged)
    told.calls.pop()
    found = grade(judged, episode(judged, airline(), told), airline(), said(True, None))
    assert found.reward == 0.0


def test_when_a_judge_is_asked() -> None:
    stopped = ep.Episode(end=ep.EpisodeEnd(reason=ep.END_REASON_USER_STOP))
    cut = ep.Episode(end=ep.EpisodeEnd(reason=LIMIT))
    in_basis, outside = task(reward_basis=[NL_ASSERTION]), task(reward_basis=[DB])
    without = task(reward_basis=[NL_ASSERTION], nl_assertions=[])
    assert wants_assertions(in_basis, stopped, always=False)
    assert not wants_assertions(in_basis, cut, always=False)
    assert not wants_assertions(outside, stopped, always=False)
    assert wants_assertions(outside, cut, always=True)
    assert not wants_assertions(without, stopped, always=True)
