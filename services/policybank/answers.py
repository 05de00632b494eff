"""What the curator is asked to answer, as JSON schemas, and how its answers are read.

Reading is strict, because what is read becomes memory: an answer that is not whole, contradicts itself or
does not fit the bank is Unusable, with the reason in words that the model can mend it by. Nothing is
guessed, cut to fit or turned into another answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from policysweep.bank_text import SPEC_FIELDS
from policysweep.models.chat import ChatReply, Json, ResponseSchema
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.entries import same_content

MOST_CAPABILITIES = 8
"""Capabilities of one tool."""
MOST_WORKFLOWS = 4
MOST_STEPS = 20
LEAST_STEPS = 2
_HEADER_CHARACTERS = 300

_FAILURES = {
    "none": pb.FAILURE_TYPE_UNSPECIFIED,
    "policy_violation": pb.FAILURE_TYPE_POLICY_VIOLATION,
    "policy_gap": pb.FAILURE_TYPE_POLICY_GAP,
}
_GAPS = {
    "none": pb.GAP_CLASS_UNSPECIFIED,
    "ambiguous_scope": pb.GAP_CLASS_AMBIGUOUS_SCOPE,
    "under_specified_exception": pb.GAP_CLASS_UNDER_SPECIFIED_EXCEPTION,
    "logical_contradiction": pb.GAP_CLASS_LOGICAL_CONTRADICTION,
}
_OPERATIONS = ("ADD", "REVISE", "OMIT")


class Unusable(Exception):
    """An answer that cannot be used; the message says what is wrong with it."""


def _object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Json, least: int, most: int) -> Json:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


_TEXT: Json = {"type": "string"}
_ENTRY: Mapping[str, Json] = {
    "capability_id": _TEXT,
    "header": _TEXT,
    **dict.fromkeys(SPEC_FIELDS, _TEXT),
    "tool_names": _list(_TEXT, 0, 20),
}

CAPABILITIES = ResponseSchema(
    "curator_capabilities", _object(capabilities=_list(_object(**_ENTRY), 0, MOST_CAPABILITIES))
)
LESSON = ResponseSchema(
    "curator_lesson",
    _object(
        rationale=_TEXT,
        failure_type={"type": "string", "enum": list(_FAILURES)},
        gap_class={"type": "string", "enum": list(_GAPS)},
        operation={"type": "string", "enum": list(_OPERATIONS)},
        **_ENTRY,
    ),
)
WORKFLOWS = ResponseSchema(
    "curator_workflows",
    _object(
        workflows=_list(
            _object(title=_TEXT, description=_TEXT, steps=_list(_TEXT, LEAST_STEPS, MOST_STEPS)),
            0,
            MOST_WORKFLOWS,
        )
    ),
)


def reasoning_schema(most: int) -> ResponseSchema:
    """At most `most` items of ReasoningBank."""
    item = _object(title=_TEXT, description=_TEXT, content=_TEXT)
    return ResponseSchema("curator_reasoning", _object(items=_list(item, 0, most)))


# ------------------------------------------------------------------ reading


def read_object(reply: ChatReply) -> Mapping[str, Any]:
    """The JSON object that a reply consists of."""
    if reply.finish_reason == ep.FINISH_REASON_LENGTH:
        raise Unusable(f"it was cut at the token limit after {len(reply.text)} characters")
    if reply.finish_reason == ep.FINISH_REASON_CONTENT_FILTER:
        raise Unusable("the server withheld it")
    try:
        content = orjson.loads(reply.text)
    except orjson.JSONDecodeError as error:
        raise Unusable(f"it is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise Unusable("it is not a JSON object")
    return content


def read_capabilities(content: Mapping[str, Any]) -> list[pb.Entry]:
    """The entries of one tool."""
    entries = [_entry(each) for each in _objects(content, "capabilities", MOST_CAPABILITIES)]
    if len({entry.capability_id for entry in entries}) < len(entries):
        raise Unusable("a capability_id occurs twice")
    return entries


def read_lesson(content: Mapping[str, Any], entries: Mapping[str, pb.Entry]) -> pb.Revision:
    """What a feedback leads to, as the draft of a revision of a bank that holds `entries`."""
    operation = _one_of(content, "operation", _OPERATIONS)
    draft = pb.Revision(
        rationale=_text(content, "rationale"),
        failure_type=_FAILURES[_one_of(content, "failure_type", _FAILURES)],
        gap_class=_GAPS[_one_of(content, "gap_class", _GAPS)],
    )
    if operation == "OMIT":
        return draft
    entry = _entry(content)
    before = entries.get(entry.capability_id)
    if operation == "ADD" and before is not None:
        raise Unusable(f"the operation is ADD, but the bank already holds {entry.capability_id!r}")
    if operation == "REVISE" and before is None:
        raise Unusable(f"the operation is REVISE, but the bank holds no {entry.capability_id!r}")
    if before is not None and same_content(before, entry):
        raise Unusable("the operation is REVISE, but the entry would not change")
    draft.after.CopyFrom(entry)
    return draft


def read_workflows(content: Mapping[str, Any]) -> list[str]:
    """Workflows as text."""
    return [_workflow(each) for each in _objects(content, "workflows", MOST_WORKFLOWS)]


def read_reasoning(content: Mapping[str, Any], most: int) -> list[str]:
    """Reasoning items as text."""
    return [
        f"# {_line(each, 'title')}\n{_line(each, 'description')}\n{_text(each, 'content')}"
        for each in _objects(content, "items", most)
    ]


def _workflow(content: Mapping[str, Any]) -> str:
    steps = content.get("steps")
    if not isinstance(steps, list) or not LEAST_STEPS <= len(steps) <= MOST_STEPS:
        raise Unusable(f"steps must be a list of {LEAST_STEPS} to {MOST_STEPS} texts")
    numbered = [f"{number}. {_line({'step': step}, 'step')}" for number, step in enumerate(steps, 1)]
    return "\n".join([f"# {_line(content, 'title')}", _line(content, "description"), *numbered])


def _entry(content: Mapping[str, Any]) -> pb.Entry:
    header = _line(content, "header")
    if len(header) > _HEADER_CHARACTERS:
        raise Unusable(f"header has {len(header)} characters, and at most {_HEADER_CHARACTERS} make one line")
    tools = content.get("tool_names")
    if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools):
        raise Unusable("tool_names must be a list of texts")
    return pb.Entry(
        capability_id=_text(content, "capability_id"),
        header=header,
        spec=pb.Spec(
            trigger=_text(content, "trigger"),
            preconditions=_text(content, "preconditions", may_be_empty=True),
            eligibility=_text(content, "eligibility", may_be_empty=True),
            action=_text(content, "action"),
            key_insight=_text(content, "key_insight", may_be_empty=True),
        ),
        tool_names=tools,
    )


def _objects(content: Mapping[str, Any], name: str, most: int) -> Sequence[Mapping[str, Any]]:
    entries = content.get(name)
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise Unusable(f"{name} must be a list of objects")
    if len(entries) > most:
        raise Unusable(f"{name} has {len(entries)} entries, and {most} are the most")
    return entries


def _text(content: Mapping[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        raise Unusable(f"{name} must be a text" + ("" if may_be_empty else " that says something"))
    return value.strip()


def _line(content: Mapping[str, Any], name: str) -> str:
    return " ".join(_text(content, name).split())


def _one_of(content: Mapping[str, Any], name: str, options: Mapping[str, Any] | Sequence[str]) -> str:
    value = content.get(name)
    if not isinstance(value, str) or value not in options:
        raise Unusable(f"{name} must be one of {', '.join(options)}")
    return value
