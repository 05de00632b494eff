"""How the lesson of a policy gap is recognised in a text: by the phrase that carries it.

Each pattern finds the gap's clarification, its lesson and what developers explain about its tasks, and finds
nothing in the policies and in any user's scenario. A test checks that against all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LESSONS: Mapping[str, re.Pattern[str]] = {
    gap: re.compile(phrases, re.IGNORECASE)
    for gap, phrases in {
        "A-1": (
            r"does not matter whether the user wants to change or cancel"
            r"|not on the user wanting to change or cancel"
            r"|wanting to change or cancel is not required"
        ),
        "A-2": r"serv(?:e|ing) (?:the same|one) metropolitan area|both serve New York",
        "A-3": r"any reasonable (?:stated )?reason|is a (?:reasonable|sufficient) reason",
        "R-1": r"exchanged? for (?:the |an )?identical (?:available )?items?",
    }.items()
}


def carries(text: str, gap: str) -> bool:
    """Whether a text teaches what a gap is about; line breaks do not matter."""
    pattern = LESSONS.get(gap)
    return pattern is not None and pattern.search(" ".join(text.split())) is not None
