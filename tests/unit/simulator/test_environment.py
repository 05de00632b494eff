"""What the agent is first told of a DRIP-R episode, and which requests cannot be played."""

from __future__ import annotations

import pytest

from policysweep.datasets.load import load
from policysweep.errors import InputError
from policysweep.v1 import simulator_pb2
from services.simulator.environment import check_setup, first_request


def setup(bank_id: str, revision: int) -> simulator_pb2.RunEpisodeRequest:
    data = load("builtin")
    made = simulator_pb2.RunEpisodeRequest(
        episode_id="e",
        agent_target="h:1",
        scenario=data.scenarios[0],
        world=data.worlds[data.scenarios[0].task_id],
        bank_id=bank_id,
        bank_revision=revision,
        limits=simulator_pb2.EpisodeLimits(
            max_turns=1,
            max_tool_rounds=1,
            max_errors=1,
            max_repeated_calls=1,
            max_tokens=1,
            agent_call_seconds=1,
        ),
    )
    made.scenario.ClearField("task")
    return made


def test_the_agent_is_told_which_bank_to_read_and_at_which_revision() -> None:
    asked = setup("b", 3)
    check_setup(asked)
    assert (first_request(asked).bank_id, first_request(asked).bank_revision) == ("b", 3)


@pytest.mark.parametrize(("bank_id", "revision"), [("", 1), ("b", -1)])
def test_a_revision_needs_a_bank(bank_id: str, revision: int) -> None:
    with pytest.raises(InputError, match=f"RunEpisode: bank_revision is {revision}: it must be 0 or more"):
        check_setup(setup(bank_id, revision))
