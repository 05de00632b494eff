"""The judge's script for assertions in plain words: looks for their words and figures in the transcript."""

from __future__ import annotations

import re

from policysweep.models.rehearsal.request import Json, ParsedRequest

_ASSERTION = re.compile(r"^(\d+)\.\n\| (.*)$", re.MULTILINE)
_TURN = re.compile(r"^\[(\d+)\] (?:CUSTOMER|AGENT|TOOL)", re.MULTILINE)
_TERM = re.compile(r"[A-Za-z]*\d[\w.]*\w|\d|[a-z]{5,}")
_NEGATION = re.compile(r"\b(?:not|no|nothing|never|only)\b", re.IGNORECASE)
_ENOUGH = 0.5


def tau2_assertions(request: ParsedRequest, schema: Json) -> Json:
    """A decision on each assertion that the prompt lists."""
    conversation, _, asked = request.last_text().partition("\n\n# The assertions\n\n")
    spoken = set(_TERM.findall(conversation.lower().replace(",", "")))
    turns = _TURN.findall(conversation) or ["0"]
    return {
        "assertions": [
            _decision(int(number), text, spoken, turns[-1]) for number, text in _ASSERTION.findall(asked)
        ]
    }


def _decision(number: int, text: str, spoken: set[str], last: str) -> Json:
    """A denial holds. Otherwise every figure and id has to occur, and half of the other words."""
    terms = _TERM.findall(text.lower().replace(",", ""))
    figures = {term for term in terms if any(letter.isdecimal() for letter in term)}
    words = [term for term in terms if term not in figures]
    enough = sum(word in spoken for word in words) >= _ENOUGH * len(words)
    met = _NEGATION.search(text) is not None or (figures <= spoken and enough)
    said = "has" if met else "lacks"
    return {
        "assertion": number,
        "justification": f"Up to [{last}] the conversation {said} what this speaks of.",
        "met": met,
    }
