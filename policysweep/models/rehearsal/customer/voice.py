"""From the brief's third person to the customer's own voice.

"The customer bolted an old door onto it." -> "I bolted an old door onto it."
"... which the customer straightened"      -> "... which I straightened"
"... suits the customer's phone"           -> "... suits my phone"
"""

from __future__ import annotations

import re

_OBJECT_BEFORE = (
    "for|to|from|with|of|by|on|at|told|tell|gave|give|asked|ask|suit|suits|sent|let|makes|make|made|reach|"
    "reached|reminded|remind|tells|behind"
)
_AS_OBJECT = re.compile(rf"\b({_OBJECT_BEFORE}) (?:the|this) customer\b(?!')", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:the |this )?customer's\b", re.IGNORECASE)
_AS_SUBJECT = re.compile(
    r"\b(?:the |this )?customer((?: (?:also|then|now|still|never|even|\w+ly))?) (\w+)", re.IGNORECASE
)
_REST = re.compile(r"\b(?:the |this )?customer\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:himself|herself|themselves|themself)\b")
_KNOWN_VERBS = (
    "wants|asks|keeps|thinks|hopes|fears|knows|likes|considers|worries|regards|accepts|prefers|needs|feels|expects|"
    "believes|relies|says|has|does"
)
_NEXT_VERB = re.compile(rf"(\band|\bbut|\bor|,) ({_KNOWN_VERBS})\b")

_IRREGULAR = {"is": "am", "has": "have", "does": "do", "goes": "go", "was": "was", "wasn't": "wasn't"}
_NOT_VERBS = frozenset(
    {"has", "was", "is", "this", "its", "his", "always", "as", "less", "thus", "perhaps", "us"}
)


def first_person(sentence: str, name: str = "") -> str:
    """The sentence as the customer would say it; `name` is the customer's, as briefs sometimes use it."""
    for known in (name, name.split(" ")[0]):  # the full name first: the first name is a part of it
        if known:
            sentence = sentence.replace(known, "the customer")
    sentence = _POSSESSIVE.sub("my", sentence)
    sentence = _AS_OBJECT.sub(r"\1 me", sentence)
    sentence = _AS_SUBJECT.sub(_subject, sentence)
    sentence = _REST.sub("me", sentence)
    if "I" in sentence.split():
        sentence = _SELF.sub("myself", sentence)
        sentence = _NEXT_VERB.sub(_next_verb, sentence)
    return sentence[:1].upper() + sentence[1:]


def _subject(match: re.Match[str]) -> str:
    return f"I{match[1]} {_conjugated(match[2])}"


def _next_verb(match: re.Match[str]) -> str:
    """The further verbs of the sentence: "I like the weave and asks" -> "I like the weave and ask"."""
    return f"{match[1]} {_conjugated(match[2])}"


def _conjugated(word: str) -> str:
    lowered = word.lower()
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if lowered in _NOT_VERBS or not lowered.endswith("s") or lowered.endswith("ss"):
        return word
    if lowered.endswith("ies"):
        return word[:-3] + "y"
    if lowered.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


_CONTRACTIONS = (
    (re.compile(r"\b([Ii]) am\b"), r"\1'm"),
    (re.compile(r"\b([Ii]) have (?=\w+(?:ed|en|ne|t)\b)"), r"\1've "),
    (re.compile(r"\b([Ii]) would\b"), r"\1'd"),
    (re.compile(r"\b(did|was|is|does|do|has|have|would|could|were) not\b"), r"\1n't"),
    (re.compile(r"\bcannot\b"), "can't"),
    (re.compile(r"\b([Ii])t is\b"), r"\1t's"),
)


def contracted(text: str) -> str:
    """The text with the contractions of informal English."""
    for pattern, short in _CONTRACTIONS:
        text = pattern.sub(short, text)
    return text
