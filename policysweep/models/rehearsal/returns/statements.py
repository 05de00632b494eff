"""What a customer's words say: the state of each item, what is wanted, and whether a proposal is accepted.

Messages are cut into sentences and classified by their words, once per text: a conversation is read again
at every step, and the same texts come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policysweep.models.rehearsal.returns.order import Line

_TEXTS_KEPT = 4096

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"[a-z][a-z']*")

CONDITIONS = ("unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item")
"""The conditions of an item, from the best to the worst."""
FAULTS = frozenset(CONDITIONS[3:])

_WORDS: Mapping[str, str] = {
    word: condition
    for condition, words in {
        "unopened": "sealed unopened unused wrapped carton wrapping sleeve",
        "opened_unused": "opened open unboxed unpacked unrolled unwrapped unfolded tried switched tag tags",
        "opened_used": """
            used worn wore wear slept cooked printed played washed rode hike hiked flown flew built
            assembled installed hung bolted nailed screwed painted trimmed cut scratch scratches scratched
            stain stains stained scuff scuffed smell smells smelled torn redeemed loaded spent finished
            dishwasher trip dinner walks meal evenings commutes session sessions lessons groceries erected
            raised dismantled dents stripped dull drilled
        """,
        "defective": """
            defect defective faulty stall stalls stalling drip drips dripping leak leaks malfunctions
            overheats
        """,
    }.items()
    for word in words.split()
}
_PHRASES: Sequence[tuple[str, str]] = tuple(
    (phrase, condition)
    for condition, phrases in {
        "opened_used": ("put together", "put up"),
        "defective": (
            "stopped working", "stops working", "does not work", "doesn't work", "does not turn",
            "does not pair", "doesn't pair", "does not hold", "doesn't hold", "won't turn", "won't start",
            "brown mark", "shuts off",
        ),
        "wrong_item": (
            "wrong item", "wrong size", "wrong one", "wrong magnification", "wrong grade", "wrong model",
            "wrong product", "not the one i", "not the size", "differs from", "student grade",
            "not what i ordered",
        ),
        "damaged_in_shipping": (
            "damaged in transit", "damaged in shipping", "damaged on the way", "damage from shipping",
        ),
    }.items()
    for phrase in phrases
)  # fmt: skip
_BROKEN = frozenset(["damaged", "broken", "cracked", "crushed", "dented", "dent", "knocked", "chipped"])
_ON_THE_WAY = frozenset(["arrived", "delivered", "delivery", "crew", "carrier"])
_NOT = frozenset(["not", "never", "nothing", "no", "none", "neither", "without", "hardly"])
_NEGATION_REACH = 3

_KEEPS = (
    "keep the", "keep it", "to keep", "keeping the", "stays with", "stays put", "staying put", "staying with",
    "be kept", "be retained", "hang on to",
)  # fmt: skip
_EXCHANGE = ("exchang", "swap", "replacement", "in place of", "rather have the")
_DANGER = (
    "burn", "scorch", "smoke", "brown mark", "shock", "injur", "redness", "became red", "rash", "safety",
)  # fmt: skip

_YES = (
    "i accept", "is accepted", "acceptable to me", "agreement is hereby given", "go ahead", "please proceed",
    "works for me", "fine by me", "sounds fair", "seems fair", "is fair to me", "sounds good", "ok deal",
    "i agree", "i'll accept", "accept it", "live with it", "accept the", "accepted under", "accept your",
)  # fmt: skip
_NO = (
    "cannot be accepted", "cannot agree", "cannot accept", "can't agree", "can't accept", "not acceptable",
    "objection", "must object", "don't agree", "do not agree", "not okay", "doesn't sit right",
    "does not seem right", "unfair", "reconsider", "look again", "no other way",
)  # fmt: skip
_PERSON = (
    "real person", "human", "colleague with", "person with authority", "can decide such", "allowed to decide",
    "supervisor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's words and the worst condition that it states; None when it states none."""

    words: frozenset[str]
    condition: str | None
    keeps: bool


@dataclass(frozen=True, slots=True)
class Stated:
    """What the customer stated: a condition by item, the items to be kept, and wishes."""

    conditions: Mapping[str, str]
    kept: frozenset[str]
    wants_exchange: bool
    safety: bool


def read_statements(texts: Sequence[str], lines: Sequence[Line]) -> Stated:
    """Sort the customer's sentences by item; an item of which nothing is said counts as opened."""
    by_item = _by_item([sentence for text in texts for sentence in sentences(text)], lines)
    several = len(lines) > 1
    return Stated(
        conditions={item: _worst(said) or "opened_unused" for item, said in by_item.items()},
        kept=frozenset(item for item, said in by_item.items() if several and any(s.keeps for s in said)),
        wants_exchange=_mentions(texts, _EXCHANGE),
        safety=_mentions(texts, _DANGER),
    )


def accepts(text: str) -> bool:
    """Whether a reply accepts what was proposed."""
    return _mentions([text], _YES) and not _mentions([text], _NO) and not wants_person(text)


def wants_person(text: str) -> bool:
    """Whether a reply asks for a human."""
    return _mentions([text], _PERSON)


def worse(first: str, second: str) -> str:
    """The worse of two conditions."""
    return max(first, second, key=CONDITIONS.index)


@lru_cache(maxsize=_TEXTS_KEPT)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a message."""
    return tuple(_sentence(part) for part in _SENTENCE.split(text.lower()) if part)


def _sentence(text: str) -> Sentence:
    words = _WORD.findall(text)
    stated = [phrase_condition for phrase, phrase_condition in _PHRASES if phrase in text]
    for position, word in enumerate(words):
        condition = _WORDS.get(word)
        if condition is not None and not _negated(words, position):
            stated.append(condition)
    known = frozenset(words)
    if known & _BROKEN and known & _ON_THE_WAY:
        stated.append("damaged_in_shipping")
    worst = max(stated, key=CONDITIONS.index, default=None)
    return Sentence(known, worst, any(hint in text for hint in _KEEPS))


def _negated(words: list[str], position: int) -> bool:
    before = words[max(0, position - _NEGATION_REACH) : position]
    return any(word in _NOT or word.endswith("n't") for word in before)


def _by_item(said: Iterable[Sentence], lines: Sequence[Line]) -> dict[str, list[Sentence]]:
    """Each item's sentences. One that names no item goes with the sentence before it.

    A fault of which it is not said what has it belongs to the dearest item only.
    """
    keys = _telling_words(lines)
    found: dict[str, list[Sentence]] = {line.item_id: [] for line in lines}
    main = [max(lines, key=lambda line: line.share).item_id] if lines else []
    current = list(found)
    for sentence in said:
        named = [item for item, telling in keys.items() if telling & sentence.words]
        current = named or current
        for item in main if not named and sentence.condition in FAULTS else current:
            found[item].append(sentence)
    return found


def _telling_words(lines: Sequence[Line]) -> dict[str, frozenset[str]]:
    """The words of each name that no other line's name has."""
    words = {line.item_id: name_words(line.name) for line in lines}
    return {
        item: own.difference(*(its for other, its in words.items() if other != item))
        for item, own in words.items()
    }


@lru_cache(maxsize=_TEXTS_KEPT)
def name_words(name: str) -> frozenset[str]:
    """The words of a product's name that are long enough to tell it."""
    return frozenset(word for word in _WORD.findall(name.lower()) if len(word) > 2)


def _worst(said: Iterable[Sentence]) -> str | None:
    stated = (sentence.condition for sentence in said if sentence.condition is not None)
    return max(stated, key=CONDITIONS.index, default=None)


def _mentions(texts: Iterable[str], hints: Sequence[str]) -> bool:
    return any(hint in lowered for lowered in map(str.lower, texts) for hint in hints)
