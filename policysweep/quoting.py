"""How text that others wrote stands in a prompt of ours: every line of it begins with "| ".

Nothing that the prompt itself says begins that way. A message that holds a heading, a closing tag, another
turn or an order to the reader therefore stays visibly what it is, whatever it says.
"""

from __future__ import annotations

import re

PREFIX = "| "

# Control tokens of common chat templates. A tokenizer reads them as such even in the middle of a message,
# which would end the quoted text for the model. A blank inside breaks them.
_CONTROL = re.compile(r"<(?=[|\uff5c]|/?s>|(?:start|end)_of_turn>)|\[(?=/?INST\])")


def quoted(text: str, limit: int | None = None) -> str:
    """`text` with every line quoted, and cut after `limit` characters with a note that says so.

    Whatever ends a line somewhere (also U+2028, form feed, a lone carriage return) ends one here.
    """
    note = ""
    if limit is not None and len(text) > limit:
        note = f"\n(cut here: {len(text) - limit} of {len(text)} characters are left out)"
        text = text[:limit]
    if "<" in text or "[" in text:
        text = _CONTROL.sub(lambda found: f"{found.group()} ", text)
    return PREFIX + f"\n{PREFIX}".join(text.splitlines() or [""]) + note
