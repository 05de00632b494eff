"""The curator's script: writes a policy bank from a policy, and learns from feedback by the letter.

A first bank quotes the policy: its passages, sorted to the tools whose words they share. A feedback leads to
what it says and to nothing else: an explanation is written word for word into the entry that it is nearest
to, or into a new one. So an agent that finds a lesson in the bank finds it because somebody explained it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from policysweep.models.rehearsal.request import Json, ParsedRequest

_TOOL = re.compile(r"capabilities of the tool `(.+)` now\.")
_DESCRIBED = re.compile(r"^\| ([^\s:]+): (.*)$", re.MULTILINE)
_REWARD = re.compile(r"^Reward, from 0 to 1: (\S+)$", re.MULTILINE)
_CALL = re.compile(r"^AGENT calls a tool\n\| (\S+) (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_HEADING = re.compile(r"^#+\s*(.+)$")
_WORD = re.compile(r"[a-z]{4,}")
_LABEL = re.compile(r"^(TRIGGER|PRECONDITIONS|ELIGIBILITY|ACTION|KEY INSIGHT|TOOLS): ", re.MULTILINE)
_BEFORE_ACTING = re.compile(r"\b(?:must|before|first|confirm|obtain|provide|verify|check)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:only|cannot|can|not|unless|within|eligible|qualif\w+|if)\b", re.IGNORECASE)
_GAPS = (
    ("logical_contradiction", re.compile(r"does not matter|regardless|whether or not", re.IGNORECASE)),
    ("ambiguous_scope", re.compile(r"\bexamples?\b|\bany\b", re.IGNORECASE)),
)
_NEAR = 0.34
"""Share of an explanation's words that an entry must hold to be the one that is revised."""
_MOST_PASSAGES = 3
_MOST_SENTENCES = 6
_MOST_HEADER = 300
_STOP = frozenset({"that", "this", "with", "from", "have", "will", "when", "user", "agent", "they", "their"})


def _words(text: str) -> set[str]:
    """What a text is about; endings are cut off, so that "cancel" and "cancellations" are the same."""
    return {word[:6] for word in set(_WORD.findall(text.lower())) - _STOP}


def _unquoted(text: str) -> str:
    return "\n".join(line[2:] for line in text.split("\n") if line.startswith("| "))


def _between(text: str, start: str, end: str = "") -> str:
    """What stands after the line `start`, up to the line `end`."""
    found = text.partition(f"{start}\n")[2]
    return found.partition(f"\n{end}\n")[0] if end else found


def _query(case: str) -> str:
    return _unquoted(_between(case, "What the customer came for:", "What happened, in order:"))


def _slug(text: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", text.lower())[:5])


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0][:160]


# ------------------------------------------------------------------ the first bank


@dataclass(frozen=True, slots=True)
class _Passage:
    """A heading of the policy with the sentences below it."""

    heading: str
    sentences: Sequence[str]

    def share(self, words: set[str]) -> float:
        """How much of a tool's words it holds; the heading counts more."""
        text = _words(" ".join(self.sentences))
        return len(words & text) + 3 * len(words & _words(self.heading))

    def entry(self, tool: str) -> Json:
        """The passage as a capability."""
        said = self.sentences[:_MOST_SENTENCES]
        before = [each for each in said if _BEFORE_ACTING.search(each)]
        who = [each for each in said if _WHO.search(each) and each not in before]
        rest = [each for each in said if each not in before and each not in who]
        return {
            "capability_id": _slug(f"{tool or 'conduct'} {self.heading}"),
            "header": f"{self.heading}: {_first_sentence(said[0])}",
            "trigger": f"The customer's request is about: {self.heading}.",
            "preconditions": " ".join(before),
            "eligibility": " ".join(who),
            "action": " ".join(rest or said),
            "key_insight": "",
            "tool_names": [tool] if tool else [],
        }


def _passages(policy: str) -> Iterator[_Passage]:
    heading, sentences = "General rules", list[str]()
    for line in policy.split("\n"):
        if found := _HEADING.match(line):
            if sentences:
                yield _Passage(heading, sentences)
            heading, sentences = found.group(1).strip(), []
        elif said := line.strip(" -*\t"):
            sentences += _SENTENCE.split(said)
    if sentences:
        yield _Passage(heading, sentences)


def _capabilities(request: ParsedRequest, schema: Json) -> Json:
    system = request.system_text()
    passages = list(_passages(_unquoted(_between(system, "# The written policy", "# The database schema"))))
    tools = dict(_DESCRIBED.findall(_between(system, "# The tools")))
    found = _TOOL.search(request.last_text())
    tool = found.group(1) if found else ""
    if tool:
        chosen = _about(tool, tools.get(tool, ""), passages)
    else:
        taken = [each for name, described in tools.items() for each in _about(name, described, passages)]
        chosen = [passage for passage in passages if passage not in taken][:_MOST_PASSAGES]
    entries = {entry["capability_id"]: entry for entry in (passage.entry(tool) for passage in chosen)}
    return {"capabilities": list(entries.values())}


def _about(tool: str, described: str, passages: Sequence[_Passage]) -> Sequence[_Passage]:
    """The passages that share most words with a tool, the nearest first."""
    words = _words(tool.replace("_", " ")) | _words(described)
    shares = [(passage.share(words), passage) for passage in passages]
    enough = max(1.0, max((share for share, _ in shares), default=0.0) / 2)
    near = sorted((each for each in shares if each[0] >= enough), key=lambda each: -each[0])
    return [passage for _, passage in near[:_MOST_PASSAGES]]


# ------------------------------------------------------------------ feedback

_EMPTY: Json = {
    "capability_id": "", "header": "", "trigger": "", "preconditions": "", "eligibility": "", "action": "",
    "key_insight": "", "tool_names": [],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Held:
    """An entry of the bank, as the prompt lists it."""

    capability_id: str
    text: str

    def fields(self) -> Json:
        """Its fields, read back from its text."""
        header, *parts = _LABEL.split(self.text)
        labels = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
        tools = labels.pop("TOOLS", "")
        return {
            **_EMPTY,
            **{label.lower().replace(" ", "_"): value for label, value in labels.items()},
            "capability_id": self.capability_id,
            "header": header.strip(),
            "tool_names": tools.split(", ") if tools else [],
        }


def _lesson(request: ParsedRequest, schema: Json) -> Json:
    case = request.last_text()
    feedback = case.rpartition("# The feedback\n")[2]
    reward = _REWARD.search(feedback)
    explanation = " ".join(_unquoted(feedback).split())
    if reward is not None and float(reward.group(1)) >= 1:
        return _omitted("none", "The task was solved; there is nothing to learn from it.")
    if not explanation:
        return _omitted("policy_violation", "The task failed, and nobody said what would have been right.")
    bank = [
        _Held(_unquoted(identifier), _unquoted(text))
        for identifier, text in _entries(_between(case, "# The bank", "# The task"))
    ]
    if any(explanation in held.text for held in bank):
        return _omitted("policy_violation", "The bank says so already, and the agent did not heed it.")
    words = _words(explanation)
    near = [(len(words & _words(held.text)) / max(1, len(words)), held) for held in bank]
    share, best = max(near, key=lambda each: (each[0], each[1].capability_id), default=(0.0, None))
    if best is None or share < _NEAR:
        return _learnt("ADD", explanation, _new_entry(explanation, case, bank))
    fields = best.fields()
    header = f"{fields['header']} {_first_sentence(explanation)}"
    revised = {
        "header": header if len(header) <= _MOST_HEADER else fields["header"],
        "key_insight": f"{fields['key_insight']} {explanation}".strip(),
    }
    return _learnt("REVISE", explanation, {**fields, **revised})


def _entries(bank: str) -> Iterator[tuple[str, str]]:
    """Id and text of each entry, still quoted. The first quoted line is the id."""
    for block in bank.split("Entry:\n")[1:]:
        identifier, _, text = block.partition("\n")
        yield identifier, text


def _new_entry(explanation: str, case: str, bank: Sequence[_Held]) -> Json:
    query = _first_sentence(_query(case))
    identifier, known = f"lesson_{_slug(explanation)}", {held.capability_id for held in bank}
    while identifier in known:
        identifier += "_again"
    return {
        **_EMPTY,
        "capability_id": identifier,
        "header": _first_sentence(explanation),
        "trigger": f"A request like this one: {query}",
        "action": explanation,
        "key_insight": explanation,
    }


def _learnt(operation: str, explanation: str, entry: Json) -> Json:
    gap = next((name for name, words in _GAPS if words.search(explanation)), "under_specified_exception")
    return {
        "rationale": f"The agent followed the written policy and was wrong: {_first_sentence(explanation)}",
        "failure_type": "policy_gap",
        "gap_class": gap,
        "operation": operation,
        **entry,
    }


def _omitted(failure: str, rationale: str) -> Json:
    return {
        "rationale": rationale,
        "failure_type": failure,
        "gap_class": "none",
        "operation": "OMIT",
        **_EMPTY,
    }


# ------------------------------------------------------------------ other memories


def _workflows(request: ParsedRequest, schema: Json) -> Json:
    steps = list(dict.fromkeys(_step(*call) for call in _CALL.findall(request.last_text())))
    if len(steps) < 2:
        return {"workflows": []}
    title = _first_sentence(_query(request.last_text()))
    return {
        "workflows": [
            {
                "title": re.sub(r"\d+", "{number}", title) or "A request",
                "description": f"Handles a request in {len(steps)} steps.",
                "steps": steps[:20],
            }
        ]
    }


def _step(name: str, arguments: str) -> str:
    try:
        keys = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        keys = ()
    variables = ", ".join(f"{{{key}}}" for key in keys) if isinstance(keys, dict) else ""
    return f"Call {name} with {variables}." if variables else f"Call {name}."


def _reasoning(request: ParsedRequest, schema: Json) -> Json:
    case = request.last_text()
    lesson = " ".join(_unquoted(case.partition("# The feedback\n")[2]).split())
    if not lesson:
        tools = list(dict.fromkeys(name for name, _ in _CALL.findall(case)))
        if not tools:
            return {"items": []}
        lesson = f"Look things up and act in this order: {', '.join(tools)}."
    return {
        "items": [
            {"title": _first_sentence(lesson)[:60], "description": _first_sentence(lesson), "content": lesson}
        ]
    }


CURATOR: Mapping[str, Callable[[ParsedRequest, Json], Any]] = {
    "curator_capabilities": _capabilities,
    "curator_lesson": _lesson,
    "curator_workflows": _workflows,
    "curator_reasoning": _reasoning,
}
"""The scripts by the name of the JSON schema that a curator asks with."""
