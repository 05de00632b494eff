"""The simulated customer: a chat model that plays a persona with a brief.

It sees the persona, its own brief, what the agent says to it and its own tools' results. It sees neither
the policy, nor the policy issues, nor the agent's tool traffic.

The prompt is laid out for the prefix cache of the model server. The rules and the tools, which chat templates
put behind the system message, are the same in all conversations; who the customer is comes in the first turn.
The chat is only ever appended to, so that each call finds all earlier ones in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from policysweep.models.chat import ChatModel, ChatRequest
from policysweep.models.tools import openai_tool_calls
from policysweep.v1 import agent_pb2, episode_pb2, scenario_pb2
from services.simulator.ports import CustomerReply

_PROMPTS = Path(__file__).with_name("prompts")
RULES = _PROMPTS.joinpath("customer.md").read_text(encoding="utf-8").strip()
"""The system message, the same for every customer."""
_CHARACTER = Template(_PROMPTS.joinpath("customer_character.md").read_text(encoding="utf-8").strip())
_EMPTY_AGENT_MESSAGE = "(The agent sent an empty message.)"
_REMINDER = "(That was no message that can be sent. Write the customer's next message, short and complete.)"

PROMPT_DIGEST = hashlib.sha256(
    "\0".join((RULES, _CHARACTER.template, _EMPTY_AGENT_MESSAGE, _REMINDER)).encode()
).hexdigest()
"""SHA-256 over all that the customer's prompt is made of, hex."""


def character(scenario: scenario_pb2.Scenario, order_id: str) -> str:
    """The first turn of the customer's chat: the cue to begin, then persona, then brief."""
    persona, brief = scenario.persona, scenario.customer_brief
    traits = "\n".join(f"{trait}: {persona.personality[trait]}" for trait in sorted(persona.personality))
    return _CHARACTER.substitute(
        name=persona.name,
        age_range=persona.age_range,
        location=persona.location,
        gender=persona.gender,
        job_sector=persona.job_sector,
        income_range=persona.income_range,
        language_style=persona.language_style,
        communication_style=persona.communication_style,
        personality=traits,
        description=persona.description,
        order_id=order_id,
        basic_info=brief.basic_info,
        private_info=brief.private_info,
        behavior=brief.behavior,
    )


def opening_chat(first_turn: str, opening: str) -> list[Mapping[str, Any]]:
    """A chat in which the customer has written its first message."""
    return [
        {"role": "system", "content": RULES},
        {"role": "user", "content": first_turn},
        {"role": "assistant", "content": opening},
    ]


class ModelCustomer:
    """A customer played by a chat model. Implements CustomerPort."""

    def __init__(
        self,
        model: ChatModel,
        *,
        chat: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        sampling: agent_pb2.Sampling,
        seed: int,
        session_id: str,
        timeout: Callable[[], float],
    ) -> None:
        """`chat` is what was said so far; `timeout` gives the seconds that the next model call may take."""
        self._model = model
        self._tools = tools
        self._sampling = sampling
        self._seed = seed
        self._session_id = session_id
        self._timeout = timeout
        self._unsaid: list[str] = []
        self._messages = list(chat)

    async def reply(self) -> CustomerReply:
        """Call the model once and append what it said to the chat."""
        self._deliver()
        reply = await self._model.complete(
            ChatRequest(
                messages=self._messages,
                tools=self._tools,
                sampling=self._sampling,
                seed=self._seed,
                session_id=self._session_id,
                timeout=self._timeout(),
            )
        )
        said: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            said["tool_calls"] = openai_tool_calls(reply.tool_calls)
        self._messages.append(said)
        return CustomerReply(reply.text, reply.tool_calls, reply.finish_reason, reply.usage, reply.rehearsal)

    def hear(self, text: str) -> None:
        """What the agent says is delivered with the next call: chat templates want turns to alternate."""
        self._unsaid.append(text.strip() or _EMPTY_AGENT_MESSAGE)

    def result(self, call: episode_pb2.ToolCall, content: str) -> None:
        """Append a tool's result."""
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    def remind(self) -> None:
        """Ask for a proper message."""
        self._messages.append({"role": "user", "content": _REMINDER})

    def _deliver(self) -> None:
        if self._unsaid:
            self._messages.append({"role": "user", "content": "\n\n".join(self._unsaid)})
            self._unsaid.clear()
