"""Data inside scripts: JSON that can neither end the script that holds it nor be read as anything else."""

from __future__ import annotations

from typing import Any

import orjson

# The last two are line ends to old JavaScript, though not to JSON.
_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def script_json(value: Any) -> str:
    """JSON, without any character that HTML or JavaScript could take for the end of something.

    NaN and infinities become null.
    """
    data = orjson.dumps(value)
    for plain, escaped in _ESCAPES:
        data = data.replace(plain, escaped)
    return data.decode()
