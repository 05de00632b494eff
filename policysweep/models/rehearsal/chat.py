"""The reply to a request that no role recognises: a short text that cites the last message."""

from __future__ import annotations

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.plausible import Prompt
from policysweep.models.rehearsal.request import ParsedRequest

_FRAMES = (
    "You wrote about {0}. I am the rehearsal model: I have no weights, so this reply only shows that the "
    "way to me works.",
    "Noted: {0}. This is the rehearsal model speaking, which answers by script and not by thought.",
    "Thank you for your message about {0}. A real model would say more here; the rehearsal model stops "
    "at this.",
)


def chat(request: ParsedRequest) -> Draft:
    """A short reply."""
    key = request.conversation_key()
    return Draft(draws.choose(_FRAMES, key).format(Prompt(request.last_text()).phrase(key)))
