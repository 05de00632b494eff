"""What the ten openings of a task must be: unlike each other, in their own words, giving nothing away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from policysweep.datasets.problems import Finding
from policysweep.datasets.rules.authored.foundation import QUOTED_WORDS, Foundation, name_words
from policysweep.datasets.rules.text import Run, normal, overlap, runs, words

Json = Mapping[str, Any]

SAME_START = (3, 2)
"""So many first words may be shared by so many openings of a task."""
SHARED_RUN = 5
MOST_SHARED_IN_TASK = 0.08
"""Share of the shorter opening's five-word runs that another opening of the task may have."""

_INTERNAL = re.compile(r"\b[CT][0-9]{2}\b|RETURN_REFUND|DENY_REFUND|[IPS]-(?:[0-9]{3}|E[0-9]{2})-[0-9]")


def check_openings(
    openings: Mapping[str, str], base: Foundation, product_names: list[str]
) -> Iterator[Finding]:
    """The rules for the openings of one task; paths start at the openings."""
    for persona, text in openings.items():
        for message in _faults(text, base, base.personas[persona]):
            yield Finding((persona,), message)
    yield from _same_starts(openings)
    yield from _overlaps(opening_runs(openings, product_names))


def _faults(text: str, base: Foundation, persona: Json) -> Iterator[str]:
    spoken = words(text)
    others = (base.persona_names - name_words(persona)) & set(spoken)
    if others:
        yield f"names another persona: {sorted(others)}"
    quoted = runs(spoken, QUOTED_WORDS) & base.policy_runs
    if quoted:
        yield f"quotes {QUOTED_WORDS} words of the policy: {' '.join(min(quoted))!r}"
    internal = _INTERNAL.search(text)
    if internal:
        yield f"holds an internal id or outcome name: {internal[0]!r}"


def _same_starts(openings: Mapping[str, str]) -> Iterator[Finding]:
    length, most = SAME_START
    starts = Counter(tuple(words(text)[:length]) for text in openings.values())
    for start, count in starts.items():
        if count > most:
            yield Finding((), f"{count} openings start with {' '.join(start)!r}, at most {most} may")


def opening_runs(openings: Mapping[str, str], product_names: list[str]) -> dict[str, set[Run]]:
    """Persona to the five-word runs of its opening, product names left out, as all must use them."""
    found = {}
    for persona, text in openings.items():
        plain = normal(text)
        for name in product_names:
            plain = plain.replace(normal(name), " ")
        found[persona] = runs(words(plain), SHARED_RUN)
    return found


def _overlaps(spoken: Mapping[str, set[Run]]) -> Iterator[Finding]:
    for one, other in combinations(sorted(spoken), 2):
        share = overlap(spoken[one], spoken[other])
        if share > MOST_SHARED_IN_TASK:
            most = f"at most {MOST_SHARED_IN_TASK:.0%} may be"
            yield Finding((other,), f"shares {share:.0%} of its {SHARED_RUN}-word runs with {one}, {most}")
