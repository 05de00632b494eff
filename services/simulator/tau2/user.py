"""The simulated user of a tau2-bench task: a chat model with the task's scenario, and the marks it ends with.

It sees its scenario, what the agent says to it and the results of its own tools, where a domain has any. It
sees neither the policy nor the agent's tool traffic nor what the task is graded by. Its chat is only ever
appended to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from string import Template

from policysweep.domains.tau2 import CLOCK
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

STOP_MARKS: Mapping[str, ep.EndReason.ValueType] = {
    "###STOP###": ep.END_REASON_USER_STOP,
    "###TRANSFER###": ep.END_REASON_USER_TRANSFER,
    "###OUT-OF-SCOPE###": ep.END_REASON_USER_OUT_OF_SCOPE,
}
"""What the user ends the conversation with, tau2-bench's own marks."""

_PROMPT = Path(__file__).with_name("prompts").joinpath("user.md").read_text(encoding="utf-8")
_TEMPLATE = Template(_PROMPT)
_COMPANIES = {"airline": "an airline", "retail": "an online shop"}
_TOOLS = (
    "- You have tools for what only you can do or look at. Use one when the agent asks you to, one at a "
    "time, and tell the agent what came of it. A message is either text or tool calls.\n"
)
_SECTIONS = {
    "persona": "Who you are",
    "reason_for_call": "Why you get in touch",
    "known_info": "What you know",
    "unknown_info": "What you do not know",
    "task_instructions": "How you behave",
}

PROMPT_DIGEST = hashlib.sha256(
    "\0".join((_PROMPT, _TOOLS, CLOCK, *_COMPANIES.values(), *_SECTIONS.values())).encode()
).hexdigest()
"""SHA-256 over all that the user's prompt is made of, hex."""


def system_prompt(domain: str, scenario: tau2_pb2.Tau2UserScenario, *, has_tools: bool) -> str:
    """The user's system message: rules, equal for all tasks of a domain, then the scenario."""
    told = ((title, getattr(scenario, field).strip()) for field, title in _SECTIONS.items())
    return _TEMPLATE.substitute(
        company=_COMPANIES.get(domain, "a company"),
        clock=CLOCK,
        tools=_TOOLS if has_tools else "",
        case="\n\n".join(f"## {title}\n{text}" for title, text in told if text),
    )


def split_stop(text: str) -> tuple[str, ep.EndReason.ValueType | None]:
    """What the user says without its marks, and how the first of them ends the conversation, if any does."""
    found = sorted((text.index(mark), mark) for mark in STOP_MARKS if mark in text)
    for _, mark in found:
        text = text.replace(mark, "")
    return text.strip(), STOP_MARKS[found[0][1]] if found else None
