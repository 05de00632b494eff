"""The first turn of the customer's chat, read once per text: who it is, what it knows, what it settles for.

The turn has the sections "## Persona", "## What you know and share freely", "## What you share only when
asked" and "## How you behave". Each private sentence gets the topics that it speaks of; a question that
touches one of its topics brings it out.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache

from policysweep.models.rehearsal.customer.voice import contracted, first_person

_BRIEFS_KEPT = 1024
_TEXTS_KEPT = 4096

_SECTION = re.compile(r"^## (.+?)\s*$", re.MULTILINE)
_FIELD = re.compile(r"^\s*[-*]?\s*([A-Za-z][A-Za-z -]*?)\s*:\s*(.+?)\s*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'A-Z0-9$])")
_ORDER = re.compile(r"\bORD(?:ER)?-[A-Z0-9]+(?:-[A-Z0-9]+)*\b")
_INFORMAL = frozenset({"casual", "intimate"})

_TOPICS = {
    "use": """
        use used uses using usage worn wore wear slept tried try ran run runs played printed cooked rode
        flown flew walk walks hike trip worked evening evenings night nights week weeks times hour hours
        lesson lessons built assembled installed hung stood loaded lay often how_long redeemed activated
        painted carried meal outdoors
    """,
    "damage": """
        damag* scratch* stain* mark marks torn tear bent dent* crack* scuff* dull smell* spot condition
        snapped broke* stripped pulled trace chip* hole holes state wrong_with faint ring crash* fell fall
        worn_down trimmed cut
    """,
    "complete": """
        missing lost gone found thrown trash recycl* packag* carton cartons part parts accessor* complete
        everything_there everything_that_came included guard tag tags box pouch key keys bag bottle
        finished spent left
    """,
    "opened": "open opened seal seals sealed unopened unpacked unwrapped wrapped sleeve box",
    "when": "when date dates since notic* saw seen first_day january december day morning evening",
    "cause": "how_did happen* because why reason cause explain fell drop* gust accident",
    "contact": """
        contact* earlier before seller maker manufacturer regist* account accounts app offer* message
        phone
    """,
    "cleaning": "wash* clean* wiped dishwasher dried",
}
"""Words by topic; * stands for any ending, _ for a blank."""


def _any_of(words: str) -> re.Pattern[str]:
    alternatives = "|".join(word.replace("_", " ").replace("*", r"\w*") for word in words.split())
    return re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE)


_TOPIC_PATTERNS = {topic: _any_of(words) for topic, words in _TOPICS.items()}
_PREFERENCE = re.compile(
    r"\bwould (?:give up|accept|take|rather|prefer|pay|settle|keep|let|suit|do\b|actually"
    r"|be (?:content|pleased|welcome|acceptable|swallowed))"
    r"|\bconsiders?\b.*\bfair|acceptable|good enough|could live with|fine if",
    re.IGNORECASE,
)
_ACCEPTABLE = {
    "gift_card": re.compile(r"store credit|gift card", re.IGNORECASE),
    "exchange": re.compile(
        r"replacement|exchange|another (?:color|model|size|shade)|new (?:one|shade|block)"
        r"|model (?:with|that)",
        re.IGNORECASE,
    ),
    "partial": re.compile(r"\$\d|deduction|less\b|give up|let .* go|charge", re.IGNORECASE),
}
_WILLING = re.compile(
    r"accept|would (?:take|do|be|give)|gives? way|warm|good enough|could live", re.IGNORECASE
)
_REFUSED = re.compile(
    r"\bnot\b|never|no (?:store|replacement|exchange)|refus|reject|rather than", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence in the customer's voice, with the topics that it speaks of."""

    text: str
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Brief:
    """Who the customer is and what it knows. `agreeableness` is 1 to 5; `key` separates customers' draws."""

    register: str
    agreeableness: int
    order_id: str
    shared: tuple[Fact, ...]
    private: tuple[Fact, ...]
    preferences: tuple[str, ...]
    acceptable: frozenset[str]
    leaves_when_refused: bool
    key: int


@lru_cache(maxsize=_BRIEFS_KEPT)
def read_brief(text: str) -> Brief:
    """Read a first turn; sections that are missing are empty."""
    sections = _sections(text)
    persona = {name.lower(): value for name, value in _FIELD.findall(sections.get("persona", ""))}
    register = persona.get("language style", "").lower()
    name = persona.get("name", "").removeprefix("Dr. ")
    freely = sections.get("what you know and share freely", "")
    private = _sentences(sections.get("what you share only when asked", ""))
    behavior = sections.get("how you behave", "")
    wishes = [sentence for sentence in private if _PREFERENCE.search(sentence)]
    order = _ORDER.search(text)
    return Brief(
        register=register,
        agreeableness=_trait(persona, "agreeableness"),
        order_id=order[0] if order else "",
        shared=tuple(_fact(s, name, register) for s in _sentences(freely) if not _ORDER.search(s)),
        private=_with_topics([_fact(s, name, register) for s in private if s not in wishes]),
        preferences=tuple(_spoken(s, name, register) for s in wishes),
        acceptable=_acceptable([*wishes, *_sentences(behavior)]),
        leaves_when_refused=re.search(r"\bwithdraws\b|drop the (?:matter|return)", behavior) is not None,
        key=zlib.crc32(text.encode()),
    )


@lru_cache(maxsize=_TEXTS_KEPT)
def topics_of(text: str) -> frozenset[str]:
    """The topics that a text touches."""
    return frozenset(name for name, pattern in _TOPIC_PATTERNS.items() if pattern.search(text))


def _sections(text: str) -> dict[str, str]:
    _, *parts = _SECTION.split(text)
    return {head.lower(): body.strip() for head, body in zip(parts[::2], parts[1::2], strict=True)}


def _sentences(text: str) -> list[str]:
    return [
        sentence.strip()
        for line in text.splitlines()
        for sentence in _SENTENCE.split(line)
        if sentence.strip()
    ]


def _trait(persona: dict[str, str], trait: str) -> int:
    value = persona.get(trait, "3")
    return int(value[0]) if value[:1] in tuple("12345") else 3


def _fact(sentence: str, name: str, register: str) -> Fact:
    return Fact(_spoken(sentence, name, register), topics_of(sentence))


def _with_topics(facts: list[Fact]) -> tuple[Fact, ...]:
    """A sentence that speaks of no topic leads in to the next one and comes out with it."""
    following = [*facts[1:], *facts[-1:]]
    return tuple(
        fact if fact.topics else replace(fact, topics=after.topics)
        for fact, after in zip(facts, following, strict=True)
    )


def _spoken(sentence: str, name: str, register: str) -> str:
    own = first_person(sentence, name)
    return contracted(own) if register in _INFORMAL else own


def _acceptable(sentences: list[str]) -> frozenset[str]:
    """The kinds of offer that the brief says it would take in the end."""
    willing = [sentence for sentence in sentences if _WILLING.search(sentence)]
    return frozenset(
        kind
        for kind, pattern in _ACCEPTABLE.items()
        if any(
            pattern.search(clause) and not _REFUSED.search(clause)
            for s in willing
            for clause in re.split("[;,]", s)
        )
    )
