"""What a tool call can lead to: an outcome for the turn loop, or one of two ways out of a handler."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from policysweep.v1 import episode_pb2

Json = dict[str, Any]


class ErrorKind(enum.Enum):
    """Why a call was answered with an error."""

    UNKNOWN_TOOL = "unknown_tool"
    MALFORMED = "malformed"
    """The arguments are not JSON or do not fit the schema."""
    REFUSED = "refused"
    """The arguments are understood, and ask for something that cannot be done."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The answer to one call: JSON text for the caller, and what the turn loop counts."""

    content: str
    status: episode_pb2.ToolStatus.ValueType
    error_kind: ErrorKind | None = None


class Refused(Exception):
    """Ends a handler that is asked for the impossible. `details` join the message in the answer."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class NeedsVerification(Exception):
    """Ends a handler whose stated facts the customer has to confirm first."""

    def __init__(self, message: str, questions: list[str]) -> None:
        super().__init__(message)
        self.message = message
        self.questions = questions


def succeeded(content: Json) -> ToolOutcome:
    """The call worked."""
    return ToolOutcome(_text({"status": "ok", **content}), episode_pb2.TOOL_STATUS_OK)


def failed(kind: ErrorKind, message: str, details: Mapping[str, object] | None = None) -> ToolOutcome:
    """The call was not executed, for the reason given in `message`."""
    content = {"status": "error", "error": message, **(details or {})}
    return ToolOutcome(_text(content), episode_pb2.TOOL_STATUS_ERROR, kind)


def needs_verification(reason: NeedsVerification) -> ToolOutcome:
    """The call was not executed; the customer has to be asked."""
    content: Json = {
        "status": "verification_required",
        "message": reason.message,
        "questions": reason.questions,
    }
    return ToolOutcome(_text(content), episode_pb2.TOOL_STATUS_VERIFICATION_REQUIRED)


def already_called(earlier_id: str, message: str) -> ToolOutcome:
    """The call was not executed, because `earlier_id` was the same."""
    content: Json = {"status": "already_called", "message": message, "earlier_call_id": earlier_id}
    return ToolOutcome(_text(content), episode_pb2.TOOL_STATUS_ALREADY_CALLED)


def _text(content: Json) -> str:
    return orjson.dumps(content).decode()
