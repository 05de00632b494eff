"""The banks that the agents of a sweep read: when they fit, and what tells two of them apart."""

from __future__ import annotations

import pytest

from policysweep.errors import InputError
from policysweep.sweep.agent_banks import check_memories, entries_digest
from policysweep.v1 import agent_pb2, run_pb2
from policysweep.v1 import policybank_pb2 as pb

BANKS = {"a": run_pb2.AgentBank(bank_id="b", revision=1)}


def info(mode: str, *, reads: bool = True) -> agent_pb2.AgentInfo:
    return agent_pb2.AgentInfo(memory_mode=mode, reads_bank_revision=reads)


def test_agents_and_banks_that_fit() -> None:
    check_memories({"a": info("retrieve"), "other": info("none"), "foreign": info("", reads=False)}, BANKS)


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({"x": info("full")}, r"agent x reads a policy bank \(memory full\), but the sweep file names none"),
        ({"a": info("none")}, "agent a has no memory, but the sweep file names bank 'b' for it"),
        ({"a": info("")}, "agent a has no memory"),
        ({"a": info("full", reads=False)}, "does not say that it reads a bank at the revision"),
    ],
)
def test_a_memory_and_a_bank_belong_together(agents: dict[str, agent_pb2.AgentInfo], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_memories(agents, BANKS)


def test_the_digest_is_that_of_the_entries_in_any_order() -> None:
    first, second = (pb.Entry(capability_id=name, header=f"About {name}.") for name in "ab")
    assert entries_digest([first, second]) == entries_digest([second, first])
    changed = pb.Entry(capability_id="b", header="About something else.")
    assert len({entries_digest(each) for each in ([], [first], [first, second], [first, changed])}) == 4
