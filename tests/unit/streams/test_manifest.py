"""What may not change between two invocations of a stream run."""

from __future__ import annotations

from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.streams.manifest import decode_manifest, describe_changes
from policysweep.sweep.manifest import encode_manifest
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import simulator_pb2, stream_pb2

from .samples import manifest


def test_a_manifest_survives_the_file() -> None:
    assert decode_manifest(encode_manifest(manifest()), "m") == manifest()


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"format": 99}', b'{"format": 1, "nonsense": 1}'])
def test_what_is_no_manifest_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^m: "):
        decode_manifest(data, "m")


def test_equal_manifests_differ_in_nothing() -> None:
    other = manifest(bank_namespace="small-2", version="9")
    other.bank.version = "9"
    other.limits.agent_call_seconds = 5
    assert describe_changes(manifest(), other) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": [0, 1, 2]}, "seeds were 0, 1 and are 0, 1, 2"),
        ({"trials": 3}, "trials was 2 and is 3"),
        ({"controls": stream_pb2.CONTROL_PLACEMENT_END}, "controls was CONTROL_PLACEMENT_AFTER_FAMILY"),
        ({"limits": simulator_pb2.Tau2Limits(max_steps=3)}, "limits.max_steps was 0 and is 3"),
        ({"methods": manifest().methods[:1]}, "method policy_bank was in the run"),
        (
            {"bank": pb.BankServiceInfo(parameters={"policy_bank_limit": "9"})},
            "policy_bank_limit was 5 and is 9",
        ),
        ({"bank": pb.BankServiceInfo(parameters={})}, "policy_bank_limit was 5 and is not there"),
        (
            {
                "domains": [
                    stream_pb2.StreamDomain(domain="airline", digest="e", originals=4, sisters=2, controls=1)
                ]
            },
            "domain airline: digest was d and is e",
        ),
    ],
)
def test_each_change_is_named(changes: dict[str, Any], said: str) -> None:
    found = describe_changes(manifest(), manifest(**changes))
    assert any(said in change for change in found), found


def test_a_change_of_an_agent_names_it_and_its_memory() -> None:
    other = manifest()
    other.agents[0].infos[1].model = "n"
    assert describe_changes(manifest(), other) == ["agent fair with memory retrieve: model was m and is n"]


def test_a_change_of_regimes_is_named() -> None:
    other = manifest()
    other.methods[1].regimes[:] = [pb.FEEDBACK_REGIME_REWARD]
    assert describe_changes(manifest(), other) == [
        "method policy_bank: regimes were EXPLANATION and are REWARD"
    ]
