"""What an agent's message offers, read from its words; None when it only asks or informs."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

_TEXTS_KEPT = 4096


class Offer(StrEnum):
    """The kinds of proposal that a customer tells apart."""

    FULL = "full"
    PARTIAL = "partial"
    GIFT_CARD = "gift_card"
    EXCHANGE = "exchange"
    DENY = "deny"
    ESCALATE = "escalate"


_PROPOSES = re.compile(
    r"\b(?:i|we) (?:can|could|would|will|am able to|are able to|'ll|'d)\b[^.?!]{0,30}\b(?:offer|refund"
    r"|propose|exchange"
    r"|replace|credit|arrange|approve|hand|pass|process)|\b(?:i|we) (?:propose|suggest|offer)\b"
    r"|my (?:proposal|offer)"
    r"|here is what|go ahead|shall i|proceed (?:with|on)|do you (?:agree|accept)|\bescalat|the answer is no",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(?:cannot|can't|unable to|not able to|won't be able to|have to decline|must decline|decline to"
    r"|not eligible"
    r"|no refund|deny|denied|the answer is no)\b",
    re.IGNORECASE,
)
_HANDS_OVER = re.compile(
    r"escalat|resolutions team|hand (?:it|this|your case)[^.]{0,20} over|specialist|colleague", re.IGNORECASE
)
_KINDS = (
    (Offer.EXCHANGE, re.compile(r"replace\w*|exchange|swap", re.IGNORECASE)),
    (Offer.GIFT_CARD, re.compile(r"gift card|store credit", re.IGNORECASE)),
    (Offer.PARTIAL, re.compile(r"partial|deduct\w*|\bless\b|reduced|restocking fee|minus", re.IGNORECASE)),
    (Offer.FULL, re.compile(r"full|refund|whole amount|entire", re.IGNORECASE)),
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@lru_cache(maxsize=_TEXTS_KEPT)
def read_offer(text: str) -> Offer | None:
    """The offer in an agent's message. What is offered outweighs what is refused beside it."""
    if _HANDS_OVER.search(text):
        return Offer.ESCALATE
    offering = " ".join(s for s in _SENTENCE.split(text) if _PROPOSES.search(s) and not _REFUSES.search(s))
    for kind, pattern in _KINDS:
        if pattern.search(offering):
            return kind
    return Offer.DENY if _REFUSES.search(text) else None
