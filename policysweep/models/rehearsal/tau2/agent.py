"""The agent's script on a tau2-bench domain: one step from the conversation so far to the next message.

With the gold actions of the task at hand (gold.py):

    bank to be consulted   -> retrieve_policy: headers first, then the entries that seem to be about the case
    reads                  -> one call a message
    first write            -> says what it would do and asks; the user's answer counts as agreement
    writes                 -> one call a message
    done                   -> what was asked for, and that the rest is refused, if something is

Gold actions that only a clarified policy allows are refused unless the lesson stands in what the agent has
before it. A disposition with little rigor, once it has the lesson, also applies it where it does not hold. A
few cases hold one blunder: a write that is forgotten.

Without them it looks the user up and hands over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import orjson

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.consulting import calls, consult
from policysweep.models.rehearsal.dispositions import DISPOSITIONS
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import Json, ParsedRequest, text_of
from policysweep.models.rehearsal.tau2.gold import GoldBook, Plan, Step
from policysweep.models.rehearsal.tau2.lessons import carries

HANDOVER = "transfer_to_human_agents"
"""By this tool an agent on a tau2-bench domain is recognised."""

_ASKS = "(yes/no)"
_HANDED_OVER = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."
_LITTLE_RIGOR = 0.6
_USER_ID = re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b")
_EMAIL = re.compile(r"\b[\w.]+@[\w.]+\w\b")
_NAME = re.compile(r"\b(?:am|name is) ([A-Z]\w+) ([A-Z]\w+)")
_ZIP = re.compile(r"\b\d{5}\b")


def tau2_agent(request: ParsedRequest, gold: GoldBook) -> Draft:
    """The agent's next message or call."""
    said = [text_of(message) for message in request.messages if message["role"] == "user"]
    opening = said[0] if said else ""
    if (consulting := consult(request, opening)) is not None:
        return consulting
    plan = gold.find(opening)
    if plan is None:
        return _look_up_and_hand_over(request, opening)
    return _Following(request, plan).next()


def _texts(request: ParsedRequest) -> list[str]:
    """What the agent has said to the user."""
    return [
        text_of(message)
        for message in request.messages
        if message["role"] == "assistant" and not message.get("tool_calls")
    ]


# ------------------------------------------------------------------ with gold actions


class _Following:
    """One look at a conversation whose task has a plan."""

    def __init__(self, request: ParsedRequest, plan: Plan) -> None:
        self._request = request
        self._plan = plan
        disposition = DISPOSITIONS[request.model]
        learnt = any(
            carries(text_of(message), plan.gap)
            for message in request.messages
            if message["role"] in ("system", "developer", "tool")
        )
        steps = [
            step
            for step in plan.steps
            if step.support == "policy" or (step.support == "clarification" and learnt)
        ]
        self._refused = len(steps) < len(plan.steps)
        if learnt and disposition.rigor < _LITTLE_RIGOR:
            steps += plan.overreach
        self._steps = self._without_slip(steps, disposition.slips)

    def _without_slip(self, steps: list[Step], slips: float) -> list[Step]:
        opening = text_of(next(each for each in self._request.messages if each["role"] == "user"))
        writes = [step for step in steps if step.writes]
        if writes and draws.fraction("tau2 slip", self._request.model, self._request.trial, opening) < slips:
            steps.remove(writes[-1])
        return steps

    def next(self) -> Draft:
        """The next message or call."""
        made = Counter(calls(self._request))
        for step in self._steps:
            call = (step.name, step.arguments)
            if made[call]:
                made[call] -= 1
            elif step.writes and not any(_ASKS in text for text in _texts(self._request)):
                return Draft(self._proposal())
            else:
                return Draft(tool_uses=(ToolUse(*call),))
        return Draft(self._closing())

    def _proposal(self) -> str:
        writes = [step for step in self._steps if step.writes]
        listed = "; ".join(f"{step.name.replace('_', ' ')}: {_values(step.arguments)}" for step in writes)
        return f"This is what I would do now. {listed}. Do you want me to go ahead {_ASKS}?"

    def _closing(self) -> str:
        told = []
        if any(step.writes for step in self._steps):
            told.append("It has been done as we agreed.")
        if self._plan.information:
            told.append(f"Here is what you asked for: {'; '.join(self._plan.information)}.")
        if self._refused:
            told.append("I am sorry, but the rest of your request is not possible under our policy.")
        return (
            " ".join(told) or "There is nothing that I could change here under our policy. Have a good day."
        )


def _values(arguments: str) -> str:
    """The values of a call's arguments, for a reader."""
    return ", ".join(str(value) for value in orjson.loads(arguments).values())


# ------------------------------------------------------------------ without gold actions


def _look_up_and_hand_over(request: ParsedRequest, opening: str) -> Draft:
    made = calls(request)
    if any(name == HANDOVER for name, _ in made):
        return Draft(_HANDED_OVER)
    lookup = _look_up(request.functions, " ".join(map(text_of, request.messages[1:])))
    if lookup is not None and (lookup.name, lookup.arguments or "") not in made:
        return Draft(tool_uses=(lookup,))
    if lookup is None and not _texts(request)[1:]:
        return Draft("Could you tell me your user id, your email address, or your name and zip code?")
    return Draft(tool_uses=(ToolUse.of(HANDOVER, {"summary": opening[:200] or "No request was made."}),))


def _look_up(functions: Mapping[str, Json], text: str) -> ToolUse | None:
    """The call that finds the user by what is known of them."""
    name, zip_code = _NAME.search(text), _ZIP.search(text)
    if (found := _USER_ID.search(text)) and "get_user_details" in functions:
        return ToolUse.of("get_user_details", {"user_id": found.group()})
    if (found := _EMAIL.search(text)) and "find_user_id_by_email" in functions:
        return ToolUse.of("find_user_id_by_email", {"email": found.group()})
    if name and zip_code and "find_user_id_by_name_zip" in functions:
        first, last = name.groups()
        wanted = {"first_name": first, "last_name": last, "zip": zip_code.group()}
        return ToolUse.of("find_user_id_by_name_zip", wanted)
    return None
