"""The customer's next move, from its brief and the conversation so far.

    a tool result came last      -> say what there was to say
    the agent asks               -> answer what was asked: the order number, private facts on the topic
    the agent proposes, 1st time -> accept, or object once, as the brief and the temper have it
    the agent insists            -> accept, ask for a person, or leave

Everything follows from the messages and from hashes, so the same conversation gets the same customer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.customer.brief import Brief, Fact, read_brief, topics_of
from policysweep.models.rehearsal.customer.offers import Offer, read_offer
from policysweep.models.rehearsal.customer.wording import Voice
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import Json, ParsedRequest, text_of

WITHDRAW = "withdraw_from_conversation"
_VIEW_ORDER = "customer_view_order_details"
_PROFILE = "customer_inspect_profile"

_STAGE_DIRECTION = "("
_ASKS_ORDER = re.compile(r"order (?:number|id)|number of (?:the|your) order|which order", re.IGNORECASE)
_ASKS_LIMIT = re.compile(
    r"what would (?:settle|you accept|be acceptable)|which (?:sum|amount)|prefer", re.IGNORECASE
)
_QUESTION = re.compile(r"[^.?!]*\?")
_PATIENCE = 9
_FACTS_AT_ONCE = 2
_FACTS_WHEN_PRESSED = 5
_SURELY_ACCEPTED = {Offer.FULL: 0.97, Offer.ESCALATE: 0.75, Offer.EXCHANGE: 0.25, Offer.PARTIAL: 0.15}


@dataclass(frozen=True, slots=True)
class _Scene:
    """The conversation as the customer remembers it."""

    heard: str
    proposals: int
    own_words: str
    own_messages: int
    used_tools: frozenset[str]
    after_tool: bool


def customer(request: ParsedRequest) -> Draft:
    """The customer's next message or tool call."""
    brief = read_brief(_first_turn(request.messages))
    scene = _scene(request.messages)
    voice = Voice(brief.register, brief.key, scene.own_messages)
    offer = read_offer(scene.heard)
    if look := _look_up(request, brief, scene):
        return Draft(tool_uses=(look,))
    if offer is None:
        return Draft(_answer(brief, scene, voice))
    return _decide(request, brief, scene, voice, offer)


def _first_turn(messages: list[Json]) -> str:
    """The stage direction that says who the customer is."""
    return next((text_of(message) for message in messages if message["role"] == "user"), "")


def _scene(messages: list[Json]) -> _Scene:
    heard, own, tools, proposals = "", [], set[str](), 0
    for message in messages:
        role = message["role"]
        if role == "user":
            text = text_of(message)
            if not text.startswith(_STAGE_DIRECTION):
                heard = text
                proposals += read_offer(text) is not None
        elif role == "assistant":
            own.append(text_of(message))
            tools.update(call["function"]["name"] for call in message.get("tool_calls") or ())
    return _Scene(
        heard=heard,
        proposals=proposals,
        own_words=" ".join(own),
        own_messages=sum(map(bool, own)),
        used_tools=frozenset(tools),
        after_tool=messages[-1]["role"] == "tool",
    )


def _look_up(request: ParsedRequest, brief: Brief, scene: _Scene) -> ToolUse | None:
    """Some customers look at their order or profile before they answer, once."""
    if scene.after_tool or scene.proposals or not brief.order_id:
        return None
    chance = draws.fraction("look up", brief.key, request.trial)
    if _VIEW_ORDER in request.functions and chance < 0.12 and _VIEW_ORDER not in scene.used_tools:
        return ToolUse.of(_VIEW_ORDER, {"order_id": brief.order_id})
    if _PROFILE in request.functions and 0.12 <= chance < 0.17 and _PROFILE not in scene.used_tools:
        return ToolUse.of(_PROFILE, {})
    return None


def _answer(brief: Brief, scene: _Scene, voice: Voice) -> str:
    parts: list[str] = []
    if brief.order_id and _ASKS_ORDER.search(scene.heard):
        parts.append(voice.order_number(brief.order_id))
    questions = _QUESTION.findall(scene.heard)
    asked = topics_of(" ".join(questions) or scene.heard)
    limit = _FACTS_WHEN_PRESSED if len(questions) > 2 else _FACTS_AT_ONCE
    parts += _untold(brief.private, asked, scene)[:limit]
    if brief.preferences and _ASKS_LIMIT.search(scene.heard):
        parts.append(brief.preferences[0])
    if not parts:
        parts = _untold(brief.shared, asked, scene)[:_FACTS_AT_ONCE] or [voice.nothing_more()]
    return voice.answer(parts)


def _untold(facts: tuple[Fact, ...], asked: frozenset[str], scene: _Scene) -> list[str]:
    return [fact.text for fact in facts if fact.topics & asked and fact.text not in scene.own_words]


def _decide(request: ParsedRequest, brief: Brief, scene: _Scene, voice: Voice, offer: Offer) -> Draft:
    """Accept, object, ask for a person or leave."""
    first = scene.proposals <= 1
    mood = draws.fraction("mood", brief.key, request.trial, scene.proposals)
    if scene.own_messages >= _PATIENCE:
        return Draft(voice.grudging_acceptance())
    if mood < (_willing_at_once(brief, offer) if first else _willing_in_the_end(brief, offer)):
        return Draft(voice.acceptance() if first or offer is not Offer.DENY else voice.grudging_acceptance())
    if first:
        counter = brief.preferences[0] if brief.preferences and brief.agreeableness >= 3 else ""
        return Draft(voice.objection(counter))
    if WITHDRAW in request.functions and _leaves(request, brief, offer):
        return _leave(voice, offer)
    return Draft(voice.ask_for_person())


def _willing_at_once(brief: Brief, offer: Offer) -> float:
    kind = brief.acceptable & {offer.value}
    ease = 0.07 * (brief.agreeableness - 3)
    return _SURELY_ACCEPTED.get(offer, 0.03) + (0.3 if kind else 0.0) + ease


def _willing_in_the_end(brief: Brief, offer: Offer) -> float:
    if offer is Offer.DENY:
        return 0.25 + 0.1 * brief.agreeableness
    return 0.55 + 0.07 * brief.agreeableness + (0.1 if offer.value in brief.acceptable else 0.0)


def _leaves(request: ParsedRequest, brief: Brief, offer: Offer) -> bool:
    chance = 0.45 if offer is Offer.DENY or brief.leaves_when_refused else 0.2
    return brief.agreeableness <= 3 and draws.fraction("leave", brief.key, request.trial) < chance


def _leave(voice: Voice, offer: Offer) -> Draft:
    reason = (
        "The agent refuses what was asked for." if offer is Offer.DENY else "No acceptable offer was made."
    )
    return Draft(voice.farewell(), (ToolUse.of(WITHDRAW, {"reason": reason}),))
