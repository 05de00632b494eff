"""Roles: which script answers a request, recognised from what the request offers and asks.

    tools with declare_resolution            the returns agent
    tools with withdraw_from_conversation    the customer
    tools with transfer_to_human_agents      the agent on a tau2-bench domain
    response_format json_schema              a structured answer, by schema name where one is registered
    ###STOP### in the system message         the user of a tau2-bench task
    anything else                            a short chat reply

A later role is one module with one function and one line in ROLES, or in STRUCTURED for structured answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from policysweep.models.rehearsal.chat import chat
from policysweep.models.rehearsal.curator import CURATOR
from policysweep.models.rehearsal.customer.script import WITHDRAW, customer
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.judge import JUDGE
from policysweep.models.rehearsal.order_facts import order_facts
from policysweep.models.rehearsal.request import Json, ParsedRequest
from policysweep.models.rehearsal.returns.agent import DECLARE, returns_agent
from policysweep.models.rehearsal.structured import fill
from policysweep.models.rehearsal.tau2.agent import HANDOVER, tau2_agent
from policysweep.models.rehearsal.tau2.assertions import tau2_assertions
from policysweep.models.rehearsal.tau2.gold import GoldBook
from policysweep.models.rehearsal.tau2.user import STOP, tau2_user

Role = Callable[[ParsedRequest], Draft]
"""From a request to the content of its answer; pure."""

StructuredRole = Callable[[ParsedRequest, Json], Any]
"""From a request and its JSON schema to the value of the answer; pure."""

ROLES: Mapping[str, Role] = {DECLARE: returns_agent, WITHDRAW: customer}
"""Roles by the tool that gives them away; the first that is offered counts."""

STRUCTURED: Mapping[str, StructuredRole] = {
    **JUDGE,
    **CURATOR,
    "order_facts": order_facts,
    "tau2_assertions": tau2_assertions,
}
"""Structured answers by the name of the JSON schema; the generic filler answers all others."""


_NO_GOLD = GoldBook()


def respond(request: ParsedRequest, gold: GoldBook = _NO_GOLD) -> Draft:
    """Answer a request in the role that it calls for, within its tool_choice.

    `gold` is what the agent on a tau2-bench domain has on its tasks.
    """
    if request.tool_choice != "none":
        for tool, role in ROLES.items():
            if tool in request.functions:
                return _within_choice(role(request), request)
        if HANDOVER in request.functions:
            return _within_choice(tau2_agent(request, gold), request)
    if request.schema is not None:
        return structured(request, request.schema)
    if STOP in request.system_text():
        return _within_choice(tau2_user(request), request)
    return _within_choice(chat(request), request)


def structured(request: ParsedRequest, schema: Json) -> Draft:
    """A structured answer as compact JSON."""
    script = STRUCTURED.get(request.schema_name)
    value = (script or _filled)(request, schema)
    return Draft(orjson.dumps(value).decode())


def _filled(request: ParsedRequest, schema: Json) -> Any:
    return fill(schema, request.whole_text(), request.conversation_key())


def _within_choice(draft: Draft, request: ParsedRequest) -> Draft:
    """The draft, made to obey a required or named tool and the ban on parallel calls."""
    if request.tool_choice == "required":
        wanted = request.forced_tool
        uses = tuple(use for use in draft.tool_uses if wanted in (None, use.name)) or (_forced(request),)
        draft = Draft(tool_uses=uses)
    if len(draft.tool_uses) > 1 and not request.parallel_tool_calls:
        draft = replace(draft, tool_uses=draft.tool_uses[:1])
    return draft


def _forced(request: ParsedRequest) -> ToolUse:
    """A call that the script did not think of: arguments that fit the tool's schema."""
    name = request.forced_tool or next(iter(request.functions), "")
    parameters = request.functions[name].get("parameters") or {"type": "object"}
    return ToolUse.of(name, fill(parameters, request.last_text(), request.conversation_key()))
