"""A sweep whose agent, customer and judge are all on a real vLLM, run as a user runs it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2
from scripts.vllm.serve import Server

from .support import Sweep, counters, finish, wait_until, write_sweep

HITS, QUERIES = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"


@pytest.fixture(scope="module")
def played(tiny: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, Counter[str]]:
    """A judged sweep, and what the server counted during it."""
    sweep = write_sweep(tmp_path_factory.mktemp("sweep"), tiny, "tiny")
    before = counters(tiny)
    code, output = sweep.run()
    assert code == 0, output
    after = counters(tiny)
    after.subtract(before)
    return sweep, after


def calls(record: run_pb2.UnitRecord, role: ep.Role.ValueType) -> list[ep.ModelCall]:
    return [call for call in record.episode.model_calls if call.role == role]


def usages(sweep: Sweep) -> list[ep.Usage]:
    """Of all that is kept: model calls of the conversations, verdicts."""
    spoken = [call.usage for record in sweep.records() for call in record.episode.model_calls]
    return [*spoken, *(verdict.verdict.usage for verdict in sweep.verdicts())]


def test_every_unit_has_a_record_that_says_how_it_ended(played: tuple[Sweep, Counter[str]]) -> None:
    sweep, _ = played
    assert sweep.verify()[0] == 0
    assert not sweep.failures()
    for record in sweep.records():
        assert record.episode.end.reason != ep.END_REASON_UNSPECIFIED
        assert not record.episode.rehearsal
        if record.episode.outcome == ep.OUTCOME_UNSPECIFIED:
            assert record.episode.end.fault != ep.FAULT_PARTY_UNSPECIFIED


def test_every_model_call_says_why_it_ended_and_what_it_cost(played: tuple[Sweep, Counter[str]]) -> None:
    sweep, _ = played
    for record in sweep.records():
        for call in record.episode.model_calls:
            assert call.finish_reason != ep.FINISH_REASON_UNSPECIFIED
            assert call.usage.prompt_tokens > 0
            assert call.usage.completion_tokens > 0
            assert call.usage.HasField("cached_prompt_tokens")


def test_the_judge_held_the_schema(played: tuple[Sweep, Counter[str]]) -> None:
    """Nonsense may score a turn twice, or reach the token limit; it cannot leave the schema or the scale."""
    sweep, _ = played
    judged = [verdict for record in sweep.verdicts() for verdict in [record.verdict]]
    assert judged
    scores = [score for verdict in judged for score in verdict.scores]
    assert any(score.HasField("value") for score in scores)
    for score in scores:
        if score.HasField("value"):
            assert 1 <= score.value <= 5
            continue
        assert score.absent_reason in (
            judge_pb2.ABSENT_REASON_NOT_APPLICABLE,
            judge_pb2.ABSENT_REASON_TRUNCATED,
            judge_pb2.ABSENT_REASON_UNPARSEABLE,
        )
        assert "JSON" not in score.absent_detail


def test_later_calls_of_a_conversation_find_the_earlier_ones(played: tuple[Sweep, Counter[str]]) -> None:
    """All but the block of 128 tokens in which the new text begins, and the one before."""
    sweep, _ = played
    pairs = [
        pair
        for record in sweep.records()
        for role in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER)
        for pair in pairwise(calls(record, role))
    ]
    assert pairs
    for earlier, later in pairs:
        assert later.usage.cached_prompt_tokens >= earlier.usage.prompt_tokens - 2 * 128


def test_our_counts_are_the_servers(
    played: tuple[Sweep, Counter[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    sweep, counted = played
    ours = usages(sweep)
    prompt = sum(usage.prompt_tokens for usage in ours)
    cached = sum(usage.cached_prompt_tokens for usage in ours)
    assert 0 < cached < prompt
    assert cached <= counted[HITS] <= counted[QUERIES]
    # What is not in records and verdicts: the judge's one call for probabilities, and the goals of each task.
    assert 0.8 * counted[QUERIES] < prompt <= counted[QUERIES]
    ideal, later = within_conversations(sweep)
    with capsys.disabled():
        print(  # noqa: T201 - a figure for who runs the tests
            f"\nprefix cache over the sweep: server {counted[HITS] / counted[QUERIES]:.1%} of prompt tokens, "
            f"our records {cached / prompt:.1%}; calls after a conversation's first: {later:.1%}, "
            f"at best {ideal:.1%}"
        )


def within_conversations(sweep: Sweep) -> tuple[float, float]:
    """Of the prompt tokens of calls after the first: what the call before had sent, and what was cached."""
    pairs = [
        pair
        for record in sweep.records()
        for role in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER)
        for pair in pairwise(calls(record, role))
    ]
    total = sum(later.usage.prompt_tokens for _, later in pairs)
    sent = sum(earlier.usage.prompt_tokens for earlier, _ in pairs)
    return sent / total, sum(later.usage.cached_prompt_tokens for _, later in pairs) / total


def test_a_server_that_dies_in_mid_sweep_is_an_outage_and_no_result(tiny: Server, tmp_path: Path) -> None:
    """Two attempts are enough: a conversation that the death cut off may lose one, and waiting costs none.

    The server is the same for whoever comes after, but for its counters and its cache.
    """
    sweep = write_sweep(
        tmp_path,
        tiny,
        "tiny",
        name="outage",
        scenarios={"limit": 6},
        judges=[],
        max_attempts=2,
        outage_seconds=3600,
    )
    running = sweep.start()
    wait_until(lambda: sweep.record_files() or running.poll() is not None, "the first record")
    tiny.kill()
    assert running.poll() is None, "the sweep ended before the server was killed"
    before = len(sweep.record_files())
    tiny.start()
    code, output = finish(running)
    assert code == 0, output
    assert before < 6
    assert len(sweep.record_files()) == 6
    assert not sweep.failures()
    assert sweep.verify()[0] == 0
