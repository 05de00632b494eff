"""The part of report.json about one agent: what it decided, how its units ended, what they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from policysweep.report import bootstrap
from policysweep.report.coverage import Coverage
from policysweep.report.figures import Json, interval_json
from policysweep.report.outcomes import COARSE, COARSE_KEYS, KEYS
from policysweep.report.rows import ERROR_FIELDS, Tokens
from policysweep.report.statistics import FloatArray, effective_size, wilson
from policysweep.report.tally import UNSTATED, AgentTally, by_task, party_name
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import run_pb2


@dataclass(frozen=True, slots=True)
class Settings:
    """Least coverage of a headline (0 to 1), and the seed of the bootstrap."""

    min_coverage: float
    seed: int


def agent_section(tally: AgentTally, entry: run_pb2.AgentEntry, settings: Settings) -> Json:
    """Everything about one agent."""
    info = entry.info
    return {
        "info": {
            "variant": info.variant,
            "model": info.model,
            "version": info.version,
            "prompt_digest": info.prompt_digest,
            "sampling": {
                "temperature": info.sampling.temperature,
                "top_p": info.sampling.top_p,
                "max_tokens": info.sampling.max_tokens,
            },
            "memory_mode": info.memory_mode,
            "policy_withheld": info.policy_withheld,
            "rehearsal": info.rehearsal,
        },
        "bank": _bank(entry.bank) if entry.HasField("bank") else None,
        "rehearsal_units": tally.rehearsal,
        "coverage": coverage_section([tally]),
        "outcomes": _outcomes(tally, settings),
        "faults": _faults(tally),
        "failures": _failures(tally),
        "end_reasons": _end_reasons(tally.ends),
        "mismatches": _mismatches(tally),
        "errors": dict(zip(ERROR_FIELDS, tally.errors, strict=True)),
        "tokens": {"agent": tokens_json(tally.agent_tokens), "customer": tokens_json(tally.customer_tokens)},
        "turns_mean": tally.turns / tally.recorded if tally.recorded else None,
        "duration_seconds": _duration(tally.durations),
    }


def _bank(bank: run_pb2.AgentBank) -> Json:
    """The policy bank that the agent read."""
    return {
        "bank_id": bank.bank_id,
        "revision": bank.revision,
        "method": pb.MemoryMethod.Name(bank.method),
        "digest": bank.digest,
        "rehearsal": bank.rehearsal,
    }


def coverage_section(tallies: Iterable[AgentTally]) -> Json:
    """Units of some agents by what became of them, and the share that is scored."""
    all_of_them = list(tallies)
    counts = {
        name: sum(getattr(tally, name) for tally in all_of_them)
        for name in ("planned", "recorded", "scored", "failed", "pending")
    }
    return {**counts, "coverage": Coverage(counts["scored"], counts["planned"]).share}


def _outcomes(tally: AgentTally, settings: Settings) -> Json:
    counts, _ = by_task(tally.categories)
    fold = np.eye(len(COARSE_KEYS))[list(COARSE)]
    withheld = Coverage(tally.scored, tally.planned).withheld(settings.min_coverage)
    return {
        "withheld": withheld or None,
        **distribution(counts, KEYS, withheld=bool(withheld), seed=settings.seed),
        "coarse": distribution(counts @ fold, COARSE_KEYS, withheld=bool(withheld), seed=settings.seed),
    }


def distribution(
    counts: FloatArray, keys: tuple[str, ...], *, withheld: bool, seed: int | None = None
) -> Json:
    """Counts, and unless withheld shares, of `counts` [tasks, categories].

    Shares have their headline interval; with the `seed` of a bootstrap the other two stand beside it.
    """
    totals = dict(zip(keys, map(int, counts.sum(axis=0)), strict=True))
    if withheld:
        return {"counts": totals, "effective_units": None, "shares": None}
    sizes = counts.sum(axis=1)
    n, effective = float(sizes.sum()), effective_size(counts, sizes)
    shares: Json = {}
    for column, (key, units) in enumerate(totals.items()):
        interval = interval_json(wilson(units / n * effective, effective))
        shares[key] = {"share": units / n, "interval": interval}
        if seed is not None:
            shares[key]["wilson"] = interval_json(wilson(units, n))
            shares[key]["bootstrap"] = interval_json(bootstrap.rate(counts[:, column], sizes, seed).interval)
    return {"counts": totals, "effective_units": effective, "shares": shares}


def _faults(tally: AgentTally) -> Json:
    """Recorded units that did not end cleanly, by who failed, with their end reasons."""
    faults: Json = {}
    for party in ep.FaultParty.values():
        ends = Counter({key: units for key, units in tally.ends.items() if key[0] == party})
        if party != ep.FAULT_PARTY_UNSPECIFIED and ends:
            faults[party_name(party)] = {"units": ends.total(), "end_reasons": _end_reasons(ends)}
    if tally.unstated:
        faults[UNSTATED] = {"units": tally.unstated, "end_reasons": None}
    return faults


def _failures(tally: AgentTally) -> Json:
    """Units without record, by party and reason of the last attempt."""
    failures: Json = {}
    for (party, reason), units in sorted(tally.failures.items()):
        failures.setdefault(party, {})[reason] = units
    return failures


def _end_reasons(ends: Counter[tuple[int, int]]) -> dict[str, int]:
    totals: Counter[int] = Counter()
    for (_, reason), units in ends.items():
        totals[reason] += units
    return {
        ep.EndReason.Name(ep.EndReason.ValueType(reason)).removeprefix("END_REASON_"): totals[reason]
        for reason in sorted(totals)
    }


def _mismatches(tally: AgentTally) -> Json:
    pairs = [
        {"declared": _outcome(declared), "executed": _outcome(executed), "units": units}
        for (declared, executed), units in sorted(tally.mismatches.items())
    ]
    return {"units": tally.mismatches.total(), "pairs": pairs}


def _outcome(number: int) -> str | None:
    return KEYS[number] if number else None


def tokens_json(tokens: Tokens) -> Json:
    """Sums of what was reported; None where calls were made and none of them reported the number."""

    def total(reported: int, unreported: int) -> int | None:
        return None if tokens.answers and unreported == tokens.answers else reported

    return {
        "answers": tokens.answers,
        "model_calls": tokens.calls,
        "prompt_tokens": total(tokens.prompt, tokens.prompt_unreported),
        "prompt_unreported": tokens.prompt_unreported,
        "cached_tokens": total(tokens.cached, tokens.cached_unreported),
        "cached_unreported": tokens.cached_unreported,
        "cached_share": tokens.cached / tokens.cached_of if tokens.cached_of else None,
        "completion_tokens": total(tokens.completion, tokens.completion_unreported),
        "completion_unreported": tokens.completion_unreported,
    }


def _duration(seconds: list[float]) -> Json:
    """Wall time of an episode."""
    if not seconds:
        return {"median": None, "p95": None}
    median, p95 = np.quantile(seconds, [0.5, 0.95])
    return {"median": float(median), "p95": float(p95)}
