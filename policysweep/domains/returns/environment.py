"""One episode's order world with the agent's and the customer's tools over it.

Every call takes one path: find the tool, read its arguments, recognise a repeated call, carry it out,
remember the answer. What can come of it:

    OK                      done; a write is on record with the outcome that it amounts to
    ERROR                   unknown tool, arguments that do not fit, or an impossible request
    VERIFICATION_REQUIRED   a return or exchange whose facts the customer has to confirm first
    ALREADY_CALLED          the same call under another id, when running it again could change nothing

Repeated calls:
* The same id with the same arguments gets the stored answer: a retry is safe. With others it is refused.
* The same tool and arguments under a new id: a write that succeeded is never done again; a read is not
  repeated while the order is unchanged; a refused call neither, until the customer has said something.
  Arguments that cannot be read are reported as such each time, and verification has its own rule.

Everything is synchronous, deterministic and in memory. An unexpected exception is a fault of ours and
leaves as ToolFault; it never looks like an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policysweep.domains.returns import results
from policysweep.domains.returns.arguments import CURRENT
from policysweep.domains.returns.customer_tools import Withdrawal
from policysweep.domains.returns.resolution import RESOLUTION_TOOL, parse_resolution
from policysweep.domains.returns.results import ErrorKind, NeedsVerification, Refused, ToolOutcome
from policysweep.domains.returns.schema import ArgumentProblems, Arguments, parse_arguments
from policysweep.domains.returns.state import OrderState
from policysweep.domains.returns.toolset import (
    AGENT_TOOLS,
    CUSTOMER_TOOLS,
    Desk,
    ReadTool,
    Tool,
    WriteTool,
    definitions,
)
from policysweep.domains.returns.verification import Verifier
from policysweep.errors import ToolFault
from policysweep.v1 import episode_pb2, scenario_pb2, world_pb2

__all__ = ["ErrorKind", "ReturnsEnvironment", "ToolOutcome", "Withdrawal", "agent_tools", "customer_tools"]

Key: TypeAlias = tuple[str, str]
"""Tool name and normalised arguments; equal for calls that ask for the same."""


@functools.cache
def agent_tools() -> tuple[episode_pb2.ToolDefinition, ...]:
    """The eleven agent tools as a model is shown them."""
    return definitions(AGENT_TOOLS)


@functools.cache
def customer_tools() -> tuple[episode_pb2.ToolDefinition, ...]:
    """The five customer tools as the customer's model is shown them."""
    return definitions(CUSTOMER_TOOLS)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A call that was carried out, and when: order revision and customer messages."""

    call_id: str
    tool: Tool
    outcome: ToolOutcome
    revision: int
    statements: int


class _CallLog:
    """The calls of one side, by id and by what they ask for."""

    def __init__(self) -> None:
        self._answered: dict[str, tuple[Key, ToolOutcome]] = {}
        self.latest: dict[Key, _Earlier] = {}

    def remember(self, call_id: str, key: Key, answer: Callable[[], ToolOutcome]) -> ToolOutcome:
        """The stored answer of this id, or that of `answer`, which is then stored."""
        if call_id in self._answered:
            stored_key, stored = self._answered[call_id]
            if stored_key == key:
                return stored
            message = f"Call id {call_id!r} was used for another call; give every call an id of its own."
            return results.failed(ErrorKind.REFUSED, message)
        outcome = answer()
        self._answered[call_id] = (key, outcome)
        return outcome


class ReturnsEnvironment:
    """One episode's order world, with the agent's and the customer's tools over it.

    `world` is read, never changed; `policy` is what get_policy_info quotes. Raises InputError for a world
    that lacks what its order needs (see docs/domain-returns.md).
    """

    def __init__(self, world: world_pb2.OrderWorld, policy: scenario_pb2.Policy, customer_name: str) -> None:
        self._desk = Desk(OrderState(world), Verifier(world), policy, customer_name)
        self._aliases = {
            "order_id": world.order.order_id.upper(),
            "customer_id": world.customer.customer_id.upper(),
        }
        self._revision = 0
        self._writes: list[episode_pb2.ExecutedWrite] = []
        self._agent_calls = _CallLog()
        self._customer_calls = _CallLog()

    @property
    def withdrawal(self) -> Withdrawal | None:
        """Set once the customer has left."""
        return self._desk.withdrawal

    def writes(self) -> Sequence[episode_pb2.ExecutedWrite]:
        """The agent's writes that were carried out, in order."""
        return tuple(self._writes)

    def call_agent_tool(self, call: episode_pb2.ToolCall, *, statements: int) -> ToolOutcome:
        """Answer a call of the agent. `statements` is the number of customer messages so far.

        Raises ToolFault when the tool itself fails.
        """
        if call.name == RESOLUTION_TOOL:
            return _misplaced_resolution(call.arguments_json)
        return self._call(AGENT_TOOLS, self._agent_calls, call, statements)

    def call_customer_tool(self, call: episode_pb2.ToolCall, *, statements: int) -> ToolOutcome:
        """Answer a call of the simulated customer, in the same way."""
        return self._call(CUSTOMER_TOOLS, self._customer_calls, call, statements)

    def _call(
        self, tools: Mapping[str, Tool], log: _CallLog, call: episode_pb2.ToolCall, statements: int
    ) -> ToolOutcome:
        try:
            return self._answer(tools, log, call, statements)
        except Exception as error:
            raise ToolFault(f"{call.name} failed: {type(error).__name__}: {error}") from error

    def _answer(
        self, tools: Mapping[str, Tool], log: _CallLog, call: episode_pb2.ToolCall, statements: int
    ) -> ToolOutcome:
        request = self._understood(tools, call)
        if isinstance(request, ToolOutcome):
            return log.remember(call.id, (call.name, call.arguments_json), lambda: request)
        tool, arguments = request
        key = (call.name, arguments.model_dump_json())

        def answer() -> ToolOutcome:
            earlier = log.latest.get(key)
            if earlier and (repeated := self._repeated(earlier, statements)):
                return repeated
            outcome = self._run(tool, arguments, call.id, statements)
            log.latest[key] = _Earlier(call.id, tool, outcome, self._revision, statements)
            return outcome

        return log.remember(call.id, key, answer)

    def _understood(
        self, tools: Mapping[str, Tool], call: episode_pb2.ToolCall
    ) -> tuple[Tool, Arguments] | ToolOutcome:
        """The tool and its arguments with aliases resolved, or the answer to a call without them."""
        tool = tools.get(call.name)
        if tool is None:
            message = f"There is no tool called {call.name[:80]!r}."
            return results.failed(ErrorKind.UNKNOWN_TOOL, message, {"tools": list(tools)})
        try:
            arguments = parse_arguments(tool.arguments, call.arguments_json)
        except ArgumentProblems as error:
            message = f"The arguments of {tool.name} do not fit; nothing was done."
            return results.failed(ErrorKind.MALFORMED, message, {"problems": error.problems})
        for field, value in self._aliases.items():
            if getattr(arguments, field, None) == CURRENT:
                setattr(arguments, field, value)
        return tool, arguments

    def _repeated(self, earlier: _Earlier, statements: int) -> ToolOutcome | None:
        """The answer to a call that was made before, or None when running it again may change something."""
        unchanged = earlier.revision == self._revision
        if earlier.outcome.status == episode_pb2.TOOL_STATUS_OK:
            if isinstance(earlier.tool, WriteTool) or unchanged:
                message = f"This was done as call {earlier.call_id}; its result stands."
                return results.already_called(earlier.call_id, message)
            return None
        refused = earlier.outcome.error_kind is ErrorKind.REFUSED
        if refused and unchanged and statements <= earlier.statements:
            message = f"This was refused as call {earlier.call_id}, and nothing has changed since."
            return results.already_called(earlier.call_id, message)
        return None

    def _run(self, tool: Tool, arguments: Arguments, call_id: str, statements: int) -> ToolOutcome:
        self._desk.statements = statements
        try:
            if isinstance(tool, ReadTool):
                return results.succeeded(tool.run(self._desk, arguments))
            content, implied = tool.run(self._desk, arguments)
        except Refused as refusal:
            return results.failed(ErrorKind.REFUSED, refusal.message, refusal.details)
        except NeedsVerification as reason:
            return results.needs_verification(reason)
        self._revision += 1
        self._writes.append(
            episode_pb2.ExecutedWrite(tool_name=tool.name, tool_call_id=call_id, implied_outcome=implied)
        )
        return results.succeeded(content)


def _misplaced_resolution(arguments_json: str) -> ToolOutcome:
    """`declare_resolution` belongs between an agent and its model; here it is always an error."""
    try:
        parse_resolution(arguments_json)
    except ValueError as error:
        return results.failed(ErrorKind.MALFORMED, str(error))
    return results.failed(
        ErrorKind.MALFORMED,
        f"{RESOLUTION_TOOL} is not a tool of the shop: declare the outcome in the resolution field of the "
        "agent's response.",
    )
