from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest

from policysweep.errors import InputError
from policysweep.report.rows import ERROR_FIELDS, Tokens, row
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .records import DENY, FULL, record


def _call(made: run_pb2.UnitRecord, role: ep.Role.ValueType, **usage: int) -> None:
    made.episode.model_calls.add(role=role, usage=ep.Usage(**usage))


def test_row_keeps_what_the_report_needs() -> None:
    made = record("strict", task=3, scenario=7, trial=2, outcome=DENY)
    made.episode.reconciliation.mismatch = True
    made.episode.reconciliation.declared = DENY
    made.episode.reconciliation.executed = FULL
    made.episode.errors.agent_unknown_tools = 2
    made.episode.rehearsal = True
    found = row(made)
    assert (found.task_id, found.scenario_id, found.agent, found.trial) == (
        "task_003",
        "scenario_003_7",
        "strict",
        2,
    )
    assert (found.outcome, found.end_reason, found.fault) == (DENY, ep.END_REASON_RESOLVED, 0)
    assert (found.mismatch, found.declared, found.executed) == (True, DENY, FULL)
    assert found.errors[ERROR_FIELDS.index("agent_unknown_tools")] == sum(found.errors) == 2
    assert (found.turns, found.duration_seconds, found.rehearsal) == (4, 2.5, True)


def test_an_unreported_answer_neither_erases_a_total_nor_counts_as_zero() -> None:
    made = record()
    _call(
        made, ep.ROLE_AGENT, prompt_tokens=100, cached_prompt_tokens=60, completion_tokens=10, model_calls=2
    )
    _call(made, ep.ROLE_AGENT)
    _call(made, ep.ROLE_AGENT, prompt_tokens=0, cached_prompt_tokens=0, completion_tokens=0, model_calls=1)
    # A cached count without the size of its prompt says nothing about the share.
    _call(made, ep.ROLE_AGENT, cached_prompt_tokens=500, completion_tokens=5, model_calls=1)
    _call(made, ep.ROLE_AGENT, prompt_tokens=40, completion_tokens=5, model_calls=1)
    _call(made, ep.ROLE_CUSTOMER, prompt_tokens=7, model_calls=1)
    found = row(made)
    assert found.agent_tokens == Tokens(
        answers=5,
        calls=6,
        prompt=140,
        prompt_unreported=2,
        cached=60,
        cached_of=100,
        cached_unreported=3,
        completion=20,
        completion_unreported=1,
    )
    assert found.customer_tokens == Tokens(
        answers=1, calls=1, prompt=7, cached_unreported=1, completion_unreported=1
    )


def test_a_prompt_that_did_not_fit_counts_if_it_was_sent() -> None:
    made = record()
    for calls in (0, 1):
        made.episode.model_calls.add(
            role=ep.ROLE_AGENT,
            usage=ep.Usage(model_calls=calls),
            finish_reason=ep.FINISH_REASON_CONTEXT_OVERFLOW,
        )
    assert (row(made).agent_tokens.answers, row(made).agent_tokens.calls) == (1, 1)


def test_tokens_add_number_by_number() -> None:
    assert Tokens(*range(9)).plus(Tokens(*range(9))) == Tokens(*range(0, 18, 2))


@pytest.mark.parametrize("field", ["unit_id", "scenario_id", "task_id", "agent"])
def test_a_record_without_its_unit_is_refused(field: str) -> None:
    made = record()
    made.unit.ClearField(field)  # type: ignore[arg-type]  # the stub lists the names as literals
    with pytest.raises(InputError, match=rf"has no unit\.{field}; run `policysweep verify`"):
        row(made)


def test_a_number_of_a_newer_version_is_refused() -> None:
    made = record()
    made.episode.MergeFromString(b"\x48\x63")  # field 9, outcome, varint 99
    with pytest.raises(InputError, match=r"fair-0-0-2-0 has episode\.outcome = 99, which this version"):
        row(made)


def test_a_model_call_of_neither_side_is_refused() -> None:
    made = record()
    _call(made, ep.ROLE_AGENT)
    _call(made, ep.ROLE_TOOL)
    with pytest.raises(InputError, match=r"episode\.model_calls\[1\]\.role = 3"):
        row(made)


def test_forty_thousand_rows_take_a_few_tens_of_megabytes() -> None:
    def one(number: int) -> run_pb2.UnitRecord:
        made = record(task=number % 40, scenario=number % 10, trial=number)
        for step in range(6):
            for role in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER):
                tokens = 3000 + number % 97 + step
                _call(
                    made, role, prompt_tokens=tokens, cached_prompt_tokens=tokens - 9, completion_tokens=300
                )
        return made

    tracemalloc.start()
    try:
        rows = [row(one(number)) for number in range(1000)]
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(rows) == 1000
    assert used / len(rows) < 1000


def test_other_commands_do_not_pay_for_the_statistics() -> None:
    code = (
        "import sys, policysweep.report, policysweep.report.rows, policysweep.report.terminal;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'statsmodels', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
