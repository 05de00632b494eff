"""An agent with a memory: it reads the policy bank that a request names, in one of four ways.

    static_start   what is nearest to the customer's first message, once, in the system message
    static_turn    what is nearest to each message of the customer, as the result of a look-up after it
    retrieve       the model reads the bank itself with `retrieve_policy`: headers first, then entries
    full           all entries in the system message

What was read stays in the conversation (see notes.py), so no call rewrites the prefix of the one before. A
request that names a revision of the bank reads that one, any other the latest. Look-ups of the model are
answered here: the caller sees one answer, with the tokens of all calls behind it. A model that looks up
without end is not stopped by an error: after `rounds` calls its look-up goes out as a call of a tool that the
caller does not have, and is scored as one.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from policysweep.errors import ContextOverflow, InputError
from policysweep.models.chat import ChatReply, ChatRequest, Json
from policysweep.models.tools import openai_tool_calls
from policysweep.models.usage import add_usage
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.agent.bank_client import BankReader
from services.agent.config import AgentConfig
from services.agent.notes import Notes, woven
from services.agent.prompt import PROMPT_DIGEST, conversation, offered_tools, system_text
from services.agent.retrieval import (
    RETRIEVE_TOOL,
    TOOL,
    BadArguments,
    headers_answer,
    refusal,
    specs_answer,
    wanted_ids,
)
from services.agent.served import AgentModel, ServedModel, answer, overflow

_PROMPTS = Path(__file__).parents[1] / "prompts"
_GUIDE, _RECALLED, _TURN = (
    (_PROMPTS / f"memory_{name}.md").read_text(encoding="utf-8").strip()
    for name in ("retrieve", "recalled", "turn")
)
_RECALL = "recall_memory"
_NOT_NOW = refusal("not executed: retrieve_policy was answered first; call again what you still want")


@dataclass(slots=True)
class _Call:
    """One request being answered."""

    request: agent_pb2.RespondRequest
    notes: Notes
    turns: Sequence[Json]
    ends: float
    bank: pb.BankRef
    usage: ep.Usage = field(default_factory=ep.Usage)
    consulted: list[str] = field(default_factory=list)

    def seconds(self) -> float:
        """What is left of the time for the answer."""
        return max(0.0, self.ends - time.monotonic())


class PolicyBankAgent:
    """The baseline's prompt and tools, with a memory. Implements Agent."""

    def __init__(
        self, model: ServedModel, sampling: agent_pb2.Sampling, bank: BankReader, config: AgentConfig
    ) -> None:
        self._model = AgentModel(model, sampling, config.tool_mode)
        self._bank = bank
        self._mode = config.memory
        self._with_policy = config.policy_in_prompt
        self._recall_limit = config.recall_limit
        self._rounds = config.retrieval_rounds
        retrieves = self._mode == "retrieve"
        self._guide = _GUIDE if retrieves else ""
        self._own_tools = (TOOL,) if retrieves else ()

    async def respond(
        self, request: agent_pb2.RespondRequest, timeout_seconds: float
    ) -> agent_pb2.RespondResponse:
        """The model's next message, with what the bank gave on the way."""
        ends = time.monotonic() + timeout_seconds
        bank = self._bank_of(request)
        call = _Call(request, Notes.read(request.continuation), conversation(request), ends, bank)
        await self._remember(call)
        try:
            response = answer(request, await self._converse(call))
        except ContextOverflow as error:
            response = overflow(error)
            call.usage.model_calls += response.usage.model_calls
        response.usage.CopyFrom(call.usage)
        response.consulted_spec_ids.extend(dict.fromkeys(call.consulted))
        response.continuation = call.notes.write()
        return response

    def _bank_of(self, request: agent_pb2.RespondRequest) -> pb.BankRef:
        if not request.bank_id:
            raise InputError(
                f"bank_id must not be empty: this agent's memory_mode is {self._mode}. Name a bank, or use "
                "an agent without a memory"
            )
        return pb.BankRef(bank_id=request.bank_id, revision=request.bank_revision or None)

    async def info(self, timeout_seconds: float) -> agent_pb2.AgentInfo:
        """Fails unless the model is served with room for an answer, and the policybank service serves."""
        info, _ = await asyncio.gather(
            self._model.info(timeout_seconds, self._digest()), self._bank.check(timeout_seconds)
        )
        info.variant = "policybank"
        info.memory_mode = self._mode
        info.policy_withheld = not self._with_policy
        info.reads_bank_revision = True
        return info

    def _digest(self) -> str:
        texts = (_GUIDE, _RECALLED, _TURN, _RECALL, _NOT_NOW, TOOL.description, TOOL.parameters_json)
        settings = f"{self._recall_limit} {self._rounds}"
        return hashlib.sha256("\0".join((PROMPT_DIGEST, *texts, settings)).encode()).hexdigest()

    # ------------------------------------------------------------------ static

    async def _remember(self, call: _Call) -> None:
        """Read what this mode reads before the model is asked."""
        if self._mode in ("static_start", "full") and call.notes.system is None:
            items = await self._read(call)
            call.notes.system = _filled(_RECALLED, items)
            call.consulted += [item.capability_id for item in items]
        if self._mode == "static_turn":
            await self._remember_turn(call)

    async def _read(self, call: _Call) -> Sequence[pb.RecalledItem]:
        if self._mode == "full":
            return await self._bank.everything(call.bank, call.seconds())
        said = [each for each in call.request.messages if each.role == ep.ROLE_CUSTOMER]
        return await self._recall(call, said[0].content) if said else ()

    async def _remember_turn(self, call: _Call) -> None:
        """Recall for the customer's latest message, unless that was done before."""
        following = len(call.request.messages)
        message = call.request.messages[-1]
        if message.role != ep.ROLE_CUSTOMER or following in call.notes.exchanges:
            return
        items = await self._recall(call, message.content)
        call.consulted += [item.capability_id for item in items]
        if items:
            call.notes.add_exchange(following, _recalled(following, _filled(_TURN, items)))

    async def _recall(self, call: _Call, query: str) -> Sequence[pb.RecalledItem]:
        if not query.strip():
            return ()
        return await self._bank.recall(call.bank, query, self._recall_limit, call.seconds())

    # ---------------------------------------------------------------- retrieval

    async def _converse(self, call: _Call) -> ChatReply:
        """Ask the model until it says something to the caller, answering its look-ups."""
        for _ in range(self._rounds):
            reply = await self._ask(call)
            if not (self._own_tools and _looks_up(reply)):
                break
            exchange = await self._exchange(call, reply)
            call.notes.add_exchange(len(call.request.messages), exchange)
        else:
            reply = await self._ask(call)
        return reply

    async def _ask(self, call: _Call) -> ChatReply:
        system = system_text(call.request, guide=self._guide, with_policy=self._with_policy)
        if call.notes.system:
            system = f"{system}\n\n{call.notes.system}"
        asked = ChatRequest(
            messages=[{"role": "system", "content": system}, *woven(call.turns, call.notes)],
            tools=offered_tools(call.request, self._own_tools),
            sampling=self._model.sampling,
            seed=call.request.seed,
            session_id=call.request.episode_id,
            timeout=call.seconds(),
        )
        reply = await self._model.complete(asked)
        add_usage(call.usage, reply.usage)
        return reply

    async def _exchange(self, call: _Call, reply: ChatReply) -> list[Json]:
        """The model's message with a result for each of its calls, as chat messages."""
        messages: list[Json] = [
            {
                "role": "assistant",
                "content": reply.text,
                "tool_calls": openai_tool_calls(reply.tool_calls),
            }
        ]
        for each in reply.tool_calls:
            content = await self._look_up(call, each) if each.name == RETRIEVE_TOOL else _NOT_NOW
            messages.append({"role": "tool", "tool_call_id": each.id, "content": content})
        return messages

    async def _look_up(self, call: _Call, made: ep.ToolCall) -> str:
        try:
            ids = wanted_ids(made.arguments_json)
        except BadArguments as problem:
            return refusal(str(problem))
        if not ids:
            return headers_answer(await self._bank.headers(call.bank, call.seconds()))
        found = await self._bank.specs(call.bank, ids, call.seconds())
        call.consulted += [entry.capability_id for entry in found.entries]
        return specs_answer(found)


def _recalled(number: int, text: str) -> list[Json]:
    """What was recalled, as a look-up and its answer: chat templates take those at any place, and a model
    tells them from what the customer wrote.
    """
    # Nine letters and digits: some chat templates accept no other id.
    made = ep.ToolCall(id=f"memory{number % 1000:03d}", name=_RECALL, arguments_json="{}")
    return [
        {"role": "assistant", "content": "", "tool_calls": openai_tool_calls([made])},
        {"role": "tool", "tool_call_id": made.id, "content": text},
    ]


def _looks_up(reply: ChatReply) -> bool:
    return any(each.name == RETRIEVE_TOOL for each in reply.tool_calls)


def _filled(template: str, items: Sequence[pb.RecalledItem]) -> str:
    """The notes below one another; "" when there are none."""
    if not items:
        return ""
    return Template(template).substitute(notes="\n\n".join(item.text for item in items))
