"""Adding up what model calls used."""

from __future__ import annotations

from policysweep.models.usage import add_usage
from policysweep.v1 import episode_pb2 as ep


def total(*calls: ep.Usage) -> ep.Usage:
    added = ep.Usage()
    for call in calls:
        add_usage(added, call)
    return added


def test_what_no_call_reported_stays_absent() -> None:
    assert total(ep.Usage(latency_seconds=0.5), ep.Usage(prompt_tokens=3)) == ep.Usage(
        prompt_tokens=3, latency_seconds=0.5, model_calls=2
    )


def test_of_several_lowered_limits_the_lowest_stands() -> None:
    calls = (ep.Usage(lowered_max_tokens=limit) for limit in (700, 300, 500))
    assert total(ep.Usage(), *calls).lowered_max_tokens == 300
    assert not total(ep.Usage(), ep.Usage()).HasField("lowered_max_tokens")
