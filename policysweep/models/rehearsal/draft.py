"""What a role's script writes: the content of an answer before ids, usage and the wire format are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool. `arguments` is the text on the wire; None and invalid JSON occur as faults only."""

    name: str
    arguments: str | None

    @classmethod
    def of(cls, name: str, arguments: Mapping[str, Any]) -> ToolUse:
        """A call with arguments that are sent as a JSON object."""
        return cls(name, orjson.dumps(arguments).decode())


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer. `finish_reason` is None when it follows from the content."""

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None

    @property
    def finish(self) -> str:
        """The finish reason on the wire: stop, tool_calls, length or content_filter."""
        return self.finish_reason or ("tool_calls" if self.tool_uses else "stop")
