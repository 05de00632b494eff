"""How far the agents agree with one another, against chance and against themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report import sentences
from policysweep.report.html.markup import Child, Markup
from policysweep.report.html.numbers import estimate, share
from policysweep.report.html.parts import figure, listed, section, table, withheld
from policysweep.report.sentences import count, percent

Json = Mapping[str, Any]


def agreement_section(summary: Json) -> Markup | None:
    """None with a single agent that was tried once: there is nothing to agree with."""
    found = summary["agreement"]
    if len(found["agents"]) < 2 and not any(found["self"].values()):
        return None
    return section(
        "agreement",
        "How far the agents agree",
        withheld(found["withheld"]) if found["withheld"] and len(found["agents"]) > 1 else None,
        listed(sentences.agreement(summary)),
        _rates(summary),
        _pairs(summary) if len(found["agents"]) > 1 else None,
    )


def _rates(summary: Json) -> Child:
    rows = list(_rate_rows(summary["agreement"]))
    if not rows:
        return None
    n = f"{count(summary['agreement']['matched']['conversations'])} matched conversations"
    return [
        figure(
            "agreement-rates",
            f"Share of the same outcome in {n}: found (dot with interval) and by chance (line). An agent's "
            "agreement with itself, over repeated trials, is the ceiling for agreement with others.",
            "Agreement found and by chance",
        ),
        table(
            "Same outcome in % of matched conversations, with interval",
            ["Who", "Found", "By chance", "n"],
            rows,
        ),
    ]


def _rate_rows(found: Json) -> Iterator[list[Child]]:
    for key, name in (("all_agree", "All agents"), ("coarse_all_agree", "All agents, coarse map")):
        rate = found[key]
        if rate["rate"] is not None:
            yield [name, share(rate["rate"], rate["interval"]), percent(rate["chance"]), count(rate["n"])]
    for agent, rates in found["self"].items():
        for rate in rates:
            if rate["value"] is not None:
                name = f"{agent} with itself, {rate['trials']} trials"
                yield [name, share(rate["value"], rate["interval"]), "", count(rate["cases"])]


def _pairs(summary: Json) -> Child:
    found = summary["agreement"]
    return [
        figure(
            "kappa",
            "Cohen's kappa of each pair, with its interval; 0 is agreement by chance, 1 is perfect. "
            f"n: {_pair_sizes(found['pairwise'])} matched conversations a pair.",
            "Agreement of each pair of agents",
        ),
        table(
            "Agreement of each pair",
            ["Pair", "Cohen's kappa", "Same outcome in %", "By chance", "n"],
            [_pair_row(pair) for pair in found["pairwise"]],
        ),
    ]


def _pair_sizes(pairs: list[Json]) -> str:
    sizes = sorted({pair["n"] for pair in pairs})
    return count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"


def _pair_row(pair: Json) -> list[Child]:
    kappa, rate = pair["cohen_kappa"], pair["all_agree"]
    return [
        " and ".join(pair["agents"]),
        estimate(kappa),
        share(rate["rate"], rate["interval"], "withheld"),
        percent(rate["chance"]) if rate["chance"] is not None else "",
        count(pair["n"]),
    ]
