"""The page's own files: style sheets, scripts and the vendored chart library, read as text.

The scripts in `app/` are ES modules. A page opened from disk cannot import modules, so `app` makes one script
of them: each module once, after those that it imports, as a function that returns what it exports. For that,
imports have the form `import { name } from "./module.js";` on one line, and modules do not import in circles.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_STYLES = ("base", "charts", "report", "viewer", "streams", "print")
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z_]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)


@cache
def styles() -> str:
    """All style sheets."""
    return "\n".join(_read("style", f"{name}.css") for name in _STYLES)


@cache
def app(start: str = "main") -> str:
    """The scripts of a page as one module: `start` of `app/` and all that it imports."""
    return "\n".join(_modules(start, set()))


@cache
def charts() -> str:
    """d3 and Observable Plot, with the notices that their licences ask for."""
    notices = _read("vendor", "NOTICES.txt")
    return f"/*\n{notices}*/\n{_read('vendor', 'd3.min.js')}\n{_read('vendor', 'plot.min.js')}"


def source_hash(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style sheet."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _modules(name: str, seen: set[str]) -> Iterator[str]:
    if name in seen:
        return
    seen.add(name)
    source = _read("app", f"{name}.js")
    for _, imported in _IMPORT.findall(source):
        yield from _modules(imported, seen)
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r"const \1 = from_\2;", source))
    exported = ", ".join(found for _, found in _EXPORT.findall(source))
    yield f"const from_{name} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _read(folder: str, name: str) -> str:
    return (_HERE / folder / name).read_text(encoding="utf-8")
