from __future__ import annotations

from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.report.outcomes import COARSE, COARSE_KEYS, DISPLAY, KEYS
from policysweep.report.rows import row
from policysweep.report.tally import UNSTATED, Tallies, by_task, category
from policysweep.v1 import episode_pb2 as ep

from .records import DENY, FULL, agent_fault, failure, record, rows_of


def _tallies(planned: int, *agents: str) -> Tallies:
    return Tallies(dict.fromkeys(agents, planned))


def test_keys_are_the_wire_names_in_the_order_of_the_enum() -> None:
    assert KEYS[1:] == tuple(name.removeprefix("OUTCOME_") for name in ep.Outcome.keys()[1:])
    assert DISPLAY["RETURN_REFUND_GIFT_CARD"] == "Refund with Gift Card"
    assert set(DISPLAY) == set(KEYS)


def test_the_coarse_map_covers_each_category() -> None:
    coarse = {key: COARSE_KEYS[COARSE[position]] for position, key in enumerate(KEYS)}
    assert coarse == {
        "NO_OUTCOME_AGENT_FAULT": "NO_OUTCOME_AGENT_FAULT",
        "RETURN_REFUND_FULL_BANK": "GRANT",
        "RETURN_REFUND_PARTIAL_BANK": "GRANT",
        "RETURN_REFUND_GIFT_CARD": "GRANT",
        "DENY_REFUND": "DENY",
        "REPLACEMENT_EXCHANGE": "GRANT",
        "ESCALATE_HUMAN_AGENT": "OTHER",
        "USER_ABORT": "OTHER",
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"outcome": DENY}, DENY),
        (
            {"outcome": ep.OUTCOME_USER_ABORT, "reason": ep.END_REASON_CUSTOMER_WITHDREW},
            ep.OUTCOME_USER_ABORT,
        ),
        ({"outcome": ep.OUTCOME_UNSPECIFIED, "fault": ep.FAULT_PARTY_AGENT}, 0),
        # An agent that failed after it declared has not resolved the case.
        ({"outcome": DENY, "fault": ep.FAULT_PARTY_AGENT}, 0),
        ({"outcome": ep.OUTCOME_UNSPECIFIED, "fault": ep.FAULT_PARTY_CUSTOMER}, None),
        ({"outcome": DENY, "fault": ep.FAULT_PARTY_TOOLS}, None),
        ({"outcome": DENY, "fault": ep.FAULT_PARTY_BUDGET}, None),
        ({"outcome": ep.OUTCOME_UNSPECIFIED}, None),
    ],
)
def test_category_of_a_unit(fields: dict[str, Any], expected: int | None) -> None:
    assert category(row(record(**fields))) == expected


def test_counts_of_an_agent() -> None:
    tallies = _tallies(6, "fair")
    unstated = record(task=3, outcome=ep.OUTCOME_UNSPECIFIED)
    customer = record(task=2, fault=ep.FAULT_PARTY_CUSTOMER, reason=ep.END_REASON_ERROR_LIMIT)
    tallies.add_rows(map(row, [record(), agent_fault(task=1), customer, unstated]))
    tallies.add_failures([failure("fair", "other", ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT")])
    tally = tallies.agents["fair"]
    counts = (tally.planned, tally.recorded, tally.scored, tally.failed, tally.pending, tally.unstated)
    assert counts == (6, 4, 2, 1, 1, 1)
    assert tally.categories == {("task_000", FULL): 1, ("task_001", 0): 1}


def test_a_failure_whose_unit_has_a_record_is_history() -> None:
    tallies = _tallies(1, "fair")
    made = record()
    tallies.add_rows([row(made)])
    tallies.add_failures([failure("fair", made.unit.unit_id, ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT")])
    assert tallies.agents["fair"].failed == 0


def test_a_failure_counts_once_with_its_last_cause() -> None:
    tallies = _tallies(3, "fair")
    party = ep.FAULT_PARTY_INFRASTRUCTURE
    tallies.add_failures(
        [
            failure("fair", "a", party, "AGENT_TIMEOUT"),
            failure("fair", "a", party, "AGENT_TIMEOUT", "MODEL_SERVER_BUSY"),
            failure("fair", "b", ep.FAULT_PARTY_UNSPECIFIED),
        ]
    )
    assert tallies.agents["fair"].failures == {
        ("INFRASTRUCTURE", "MODEL_SERVER_BUSY"): 1,
        (UNSTATED, UNSTATED): 1,
    }


@pytest.mark.parametrize("fault", [ep.FAULT_PARTY_UNSPECIFIED, ep.FAULT_PARTY_CUSTOMER])
def test_a_second_record_of_a_unit_is_refused(fault: ep.FaultParty.ValueType) -> None:
    again = row(record(fault=fault))
    with pytest.raises(
        InputError, match=r"Two records for unit .* \(agent 'fair', scenario 'scenario_000_0'"
    ):
        _tallies(2, "fair").add_rows([again, again])


def test_a_second_unit_for_the_same_case_is_refused() -> None:
    other = record()
    other.unit.unit_id = "of-another-plan"
    with pytest.raises(InputError, match="Two records for unit of-another-plan"):
        _tallies(2, "fair").add_rows(map(row, [record(), other]))


def test_agents_outside_the_plan_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"record of unit .* is of agent 'fair', which the run's plan does not"
    ):
        _tallies(1, "strict").add_rows([row(record("fair"))])
    with pytest.raises(InputError, match="failure of unit x is of agent 'fair'"):
        _tallies(1, "strict").add_failures([failure("fair", "x", ep.FAULT_PARTY_TOOLS, "TOOL_FAULT")])


def test_matching_needs_a_scored_unit_of_each_agent() -> None:
    tallies = _tallies(4, "a", "b", "c")
    tallies.add_rows(rows_of({"a": [1, 2, 3, 4], "b": [1, 2, 3], "c": [1, 1, 1, 1]}))
    grid, tasks, names = tallies.matched(["a", "b"])
    assert grid.tolist() == [[1, 1], [2, 2], [3, 3]]
    assert (tasks.tolist(), names) == ([0, 1, 2], ("task_000", "task_001", "task_002"))
    assert tallies.matched(["c", "a"])[0].tolist() == [[1, 1], [1, 2], [1, 3], [1, 4]]


def test_matching_leaves_out_faults_of_others_and_keeps_the_agents_own() -> None:
    tallies = _tallies(2, "a", "b")
    tallies.add_rows(rows_of({"a": [1, 1], "b": [0]}))
    tallies.add_rows([row(record("b", task=1, fault=ep.FAULT_PARTY_TOOLS))])
    grid, _, names = tallies.matched(["a", "b"])
    assert grid.tolist() == [[1, 0]]
    assert names == ("task_000",)


def test_matching_is_by_scenario_agent_persona_and_trial() -> None:
    tallies = _tallies(9, "a", "b")
    helpful, direct = ep.AGENT_PERSONA_HELPFUL, ep.AGENT_PERSONA_DIRECT
    tallies.add_rows(
        map(
            row,
            [
                record("a", trial=0, persona=helpful, outcome=FULL),
                record("b", trial=0, persona=helpful, outcome=DENY),
                record("a", trial=0, persona=direct),
                record("b", trial=1, persona=direct),
                record("a", scenario=1, trial=1),
                record("b", scenario=2, trial=1),
            ],
        )
    )
    assert tallies.matched(["a", "b"])[0].tolist() == [[FULL, DENY]]


def test_nothing_to_match() -> None:
    grid, tasks, names = _tallies(1, "a", "b").matched(["a", "b"])
    assert (grid.shape, tasks.shape, names) == ((0, 2), (0,), ())


def test_cases_gather_the_trials_of_a_scenario_and_persona() -> None:
    tallies = _tallies(5, "fair")
    tallies.add_rows(
        map(
            row,
            [
                record(trial=0, outcome=FULL),
                record(trial=1, outcome=DENY),
                record(trial=2, outcome=FULL),
                record(trial=0, outcome=DENY, persona=ep.AGENT_PERSONA_DIRECT),
                record(trial=3, fault=ep.FAULT_PARTY_CUSTOMER),
            ],
        )
    )
    counts, tasks = tallies.cases("fair")
    assert tasks.tolist() == [0, 0]
    assert counts.sum(axis=1).tolist() == [1, 3]
    assert counts[1, FULL] == 2


def test_by_task_orders_tasks_and_keeps_each_count() -> None:
    counts, names = by_task({("b", 1): 2, ("a", 4): 3, ("b", 0): 1})
    assert names == ("a", "b")
    assert counts.tolist() == [[0, 0, 0, 0, 3, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]]
