"""The user's script: says what its scenario says, agrees to what is proposed, and ends the conversation.

first                  -> why it gets in touch and what it knows, with the reference of its scenario
handed over            -> ###TRANSFER###
asked to agree         -> agrees; now and then it stops in the same breath, as models do
refused                -> insists once, then stops
asked for something    -> what it knows, once; then that it does not know; then ###OUT-OF-SCOPE###
told that all is done  -> ###STOP###
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.request import ParsedRequest, text_of
from policysweep.models.rehearsal.tau2.gold import signature

STOP = "###STOP###"
"""By this mark in its system message a user is recognised."""

_TRANSFER = "###TRANSFER###"
_OUT_OF_SCOPE = "###OUT-OF-SCOPE###"
_SECTION = re.compile(
    r"^## (?:Who you are|Why you get in touch|What you know|What you do not know|How you behave)$", re.M
)
_WHY, _KNOWN = "## Why you get in touch", "## What you know"
_HANDED_OVER = re.compile(r"being transferred|transfer you|transferred to a human", re.IGNORECASE)
_ASKS_TO_AGREE = re.compile(
    r"\(yes/no\)|\b(?:do you (?:agree|confirm|want me to)|shall i|would you like me to|please confirm)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(r"\b(?:cannot|can't|unable|not possible|not allowed|does not allow)\b", re.IGNORECASE)
_STOPS_WITH_CONSENT = 0.125
_PERSON = (
    (re.compile(r"\byou(?:'re| are)\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byou (name|user id|zip)\b", re.IGNORECASE), r"my \1"),
    (re.compile(r"\byou(?:'d| would)\b", re.IGNORECASE), "I would"),
    (re.compile(r"\byourself\b", re.IGNORECASE), "myself"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)
_CONSENT = "Yes, please go ahead."
_INSISTS = "I do not see why that should not be possible. Please look at it again:"


def tau2_user(request: ParsedRequest) -> Draft:
    """The user's next message."""
    scenario = _scenario(request.system_text())
    said = [text_of(message) for message in request.messages if message["role"] == "assistant"]
    if not said:
        return Draft(_opening(scenario))
    heard = request.last_text()
    if _HANDED_OVER.search(heard):
        return Draft(_TRANSFER)
    if _ASKS_TO_AGREE.search(heard):
        stops = draws.fraction("tau2 consent", *scenario.values()) < _STOPS_WITH_CONSENT
        return Draft(f"{_CONSENT} {STOP}" if stops else _CONSENT)
    if _REFUSES.search(heard) and not any(text.startswith(_INSISTS) for text in said):
        return Draft(f"{_INSISTS} {first_person(scenario.get(_WHY, ''))}".strip())
    if "?" in heard:
        return Draft(_answer(scenario, said))
    return Draft(STOP)


def _scenario(system: str) -> dict[str, str]:
    """The sections of the scenario by heading."""
    headings = list(_SECTION.finditer(system))
    ends = [found.start() for found in headings[1:]] + [len(system)]
    return {
        found.group(): system[found.end() : end].strip() for found, end in zip(headings, ends, strict=True)
    }


def _opening(scenario: dict[str, str]) -> str:
    told = (scenario.get(_WHY, ""), scenario.get(_KNOWN, ""))
    return " ".join([*(first_person(text) for text in told if text), signature(list(scenario.values()))])


def _answer(scenario: dict[str, str], said: Sequence[str]) -> str:
    known = first_person(scenario.get(_KNOWN, ""))
    if known and known not in said:
        return known
    unknown = "I do not know that."
    return unknown if unknown not in said else _OUT_OF_SCOPE


def first_person(text: str) -> str:
    """A scenario's "you" as the user's "I", on one line."""
    line = " ".join(text.split()).lstrip(".")
    for pattern, mine in _PERSON:
        line = pattern.sub(mine, line)
    return line[:1].upper() + line[1:]
