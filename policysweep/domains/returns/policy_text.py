"""get_policy_info: the sections of the written policy that bear on a subject.

A text with markdown headings is cut at them. A plain text is cut at its own headings, which are short
lines without a full stop. Sections are scored by the words of the subject, of the product category and
of the query, headings counting more; the best ones are shown in the order of the text, up to a bound.
The texts are shared by all episodes of a sweep, so both the cut and the answers are kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from policysweep.domains.returns.arguments import GetPolicyInfo
from policysweep.domains.returns.results import Json
from policysweep.v1 import scenario_pb2

MAX_CHARACTERS = 6_000
"""Most policy text in one answer."""
MAX_HEADINGS = 40

_SUBJECTS: dict[str, tuple[str, ...]] = {
    "returns": ("return", "window", "condition", "unused", "packaging"),
    "exchanges": ("exchange", "replace", "swap"),
    "refunds": ("refund", "deduct", "fee", "credit", "payment"),
    "warranties": ("warrant", "defect", "fault", "repair"),
    "shipping": ("ship", "deliver", "parcel", "label", "late"),
    "discounts": ("promotion", "discount", "coupon", "bundle", "offer"),
    "gift_cards": ("gift card", "store credit", "gift"),
    "damaged_items": ("damage", "defect", "wrong item", "broken"),
    "all": (),
}
_COMMON = frozenset(
    {
        "about",
        "after",
        "also",
        "and",
        "are",
        "any",
        "can",
        "does",
        "for",
        "from",
        "have",
        "how",
        "into",
        "item",
    }
    | {"items", "not", "policy", "that", "the", "their", "them", "this", "what", "when", "where", "which"}
    | {"will", "with", "would", "you", "your"}
)
_MARKDOWN_HEADING = re.compile(r"^#{1,6}[ \t]+(.*\S)[ \t]*$", re.MULTILINE)
_HEADING_LENGTH = 80
_IN_HEADING, _MOST_IN_TEXT = 5, 4
_WORTH_SHOWING = 3
"""A section is shown when it scores at least the best score divided by this."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a policy. `folded` texts are for searching."""

    document: str
    heading: str
    text: str
    folded_heading: str
    folded_text: str


class PolicyIndex:
    """The sections of the policies of an episode, compared by identity."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.sections = [section for text in texts for section in _sections(text)]


def get_policy_info(policy: scenario_pb2.Policy, arguments: GetPolicyInfo) -> Json:
    """Policy sections on a subject, best ones first to be chosen, shown in the order of the text."""
    texts = (policy.primary.text, *(document.text for document in policy.related))
    words = _words(arguments.product_category) + _words(arguments.query)
    return _answer(_index(texts), arguments.policy_type, words)


@functools.lru_cache(maxsize=64)
def _index(texts: tuple[str, ...]) -> PolicyIndex:
    return PolicyIndex(texts)


@functools.lru_cache(maxsize=512)
def _answer(index: PolicyIndex, policy_type: str, words: tuple[str, ...]) -> Json:
    """The answer, shared by all who ask the same: never to be changed."""
    ranked = _ranked(index.sections, _SUBJECTS[policy_type], words)
    room = MAX_CHARACTERS
    shown: dict[int, str] = {}
    for place in ranked:
        text = index.sections[place].text
        if shown and len(text) > room:
            continue
        shown[place] = text if len(text) <= room else text[:room].rsplit(" ", 1)[0] + " ..."
        room -= len(shown[place])
    others = [s.heading for i, s in enumerate(index.sections) if i not in shown and s.heading]
    return {
        "policy_type": policy_type,
        "sections": [
            {"document": index.sections[i].document, "heading": index.sections[i].heading, "text": shown[i]}
            for i in sorted(shown)
        ],
        "other_sections": others[:MAX_HEADINGS],
    }


def _ranked(sections: Sequence[Section], subject: Sequence[str], words: Sequence[str]) -> list[int]:
    """Places of the sections worth showing, the best first. Without any term that is all of them."""
    if not subject and not words:
        return list(range(len(sections)))
    scores = [_score(s, subject) + 2 * _score(s, words) for s in sections]
    least = max(1, max(scores, default=0) // _WORTH_SHOWING)
    return sorted((i for i, score in enumerate(scores) if score >= least), key=lambda i: -scores[i])


def _score(section: Section, terms: Sequence[str]) -> int:
    return sum(
        _IN_HEADING * (term in section.folded_heading) + min(section.folded_text.count(term), _MOST_IN_TEXT)
        for term in terms
    )


def _words(text: str | None) -> tuple[str, ...]:
    """The telling words of a query, without a plural s, each once."""
    found = re.findall(r"[^\W\d_]{3,}", (text or "").casefold())
    return tuple(dict.fromkeys(w.removesuffix("s") if len(w) > 4 else w for w in found if w not in _COMMON))


def _sections(text: str) -> list[Section]:
    parts = _cut_at_markdown(text) if _MARKDOWN_HEADING.search(text) else _cut_at_short_lines(text)
    title = next((heading or body for heading, body in parts if heading or body), "")
    document = title.split("\n", 1)[0][:_HEADING_LENGTH]
    return [
        Section(document, heading, body, heading.casefold(), body.casefold())
        for heading, body in parts
        if heading or body
    ]


def _cut_at_markdown(text: str) -> list[tuple[str, str]]:
    """(heading, body) pairs; the text before the first heading has none."""
    pieces = _MARKDOWN_HEADING.split(text)
    bodies = [piece.strip() for piece in pieces[2::2]]
    return [("", pieces[0].strip()), *zip(pieces[1::2], bodies, strict=True)]


def _cut_at_short_lines(text: str) -> list[tuple[str, str]]:
    """(heading, body) pairs of a plain text; a text without short lines is cut into paragraphs."""
    parts: list[tuple[str, list[str]]] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        awaits_body = bool(parts) and bool(parts[-1][0]) and not parts[-1][1]
        if _is_heading(line) and not awaits_body:
            parts.append((line, []))
        elif parts and parts[-1][0]:
            parts[-1][1].append(line)
        else:
            parts.append(("", [line]))
    return [(heading, "\n".join(lines)) for heading, lines in parts]


def _is_heading(line: str) -> bool:
    return len(line) <= _HEADING_LENGTH and line[0].isalnum() and line[-1] not in ".,;:!?" and "|" not in line
