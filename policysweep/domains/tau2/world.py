"""One episode's database with the domain's tools over it.

A call takes one path: read the arguments, normalise their numbers, hand it to the package's own environment,
whose answer is what the caller gets. A tool that raises answers `Error: ...`, as in tau2-bench; so do a tool
that does not exist and arguments that are no JSON object.

Everything is synchronous, deterministic and in memory.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from policysweep.domains.returns.results import ErrorKind, ToolOutcome
from policysweep.domains.tau2.arguments import NotArguments, read_arguments
from policysweep.domains.tau2.toolbox import Toolbox
from policysweep.errors import ToolFault
from policysweep.v1 import episode_pb2 as ep

_CALCULATOR = "calculate"
_MAX_EXPRESSION = 400
# One power with a literal exponent below 100: the package evaluates what it is given, and 9**9**9**9 never
# ends.
_SMALL_POWER = re.compile(r"\*\*\s*[-+]?\s*\d{1,2}(?!\d)")


class World:
    """The state of one episode. Calls of its tools change it, and nothing else does."""

    def __init__(self, environment: Any, agent_box: Toolbox, user_box: Toolbox | None) -> None:
        """`environment` is a tau2-bench environment that nobody else holds."""
        self._environment = environment
        self._boxes = {ep.ROLE_AGENT: agent_box, ep.ROLE_CUSTOMER: user_box}

    def call(self, call: ep.ToolCall, requestor: ep.Role.ValueType = ep.ROLE_AGENT) -> ToolOutcome:
        """Answer a call of the agent, or of the customer in a domain with customer tools.

        Raises ToolFault when the package fails where no argument of a caller should make it fail.
        """
        box = self._boxes[requestor]
        if box is None or call.name not in box.schemas:
            return _error(ErrorKind.UNKNOWN_TOOL, f"Tool '{call.name[:80]}' not found.")
        try:
            arguments = read_arguments(call.arguments_json, box.schemas[call.name])
        except NotArguments as problem:
            return _error(ErrorKind.MALFORMED, f"The arguments {problem}.")
        if call.name == _CALCULATOR and not _can_be_calculated(str(arguments.get("expression", ""))):
            return _error(ErrorKind.REFUSED, "The expression is too large to be calculated.")
        content, failed = self._run(call, arguments, box)
        if not failed:
            return ToolOutcome(content, ep.TOOL_STATUS_OK)
        kind = ErrorKind.REFUSED if box.fits(call.name, arguments) else ErrorKind.MALFORMED
        return ToolOutcome(content, ep.TOOL_STATUS_ERROR, kind)

    def _run(self, call: ep.ToolCall, arguments: dict[str, Any], box: Toolbox) -> tuple[str, bool]:
        message = box.tool_call(id=call.id, name=call.name, arguments=arguments, requestor=box.requestor)
        try:
            with warnings.catch_warnings():
                # pydantic warns when a value of another type than declared is written out.
                warnings.simplefilter("ignore")
                answer = self._environment.get_response(message)
        except Exception as error:
            raise ToolFault(f"{call.name} failed: {type(error).__name__}: {error}") from error
        return answer.content, answer.error

    def hashes(self) -> tuple[str, str]:
        """SHA-256, hex, of the agent's and of the customer's database; "" for one that does not exist."""
        agent_box, user_box = self._boxes[ep.ROLE_AGENT], self._boxes[ep.ROLE_CUSTOMER]
        assert agent_box is not None  # every domain has agent tools
        return (
            agent_box.hash.of(self._environment.tools.db),
            user_box.hash.of(self._environment.user_tools.db) if user_box is not None else "",
        )


def _error(kind: ErrorKind, message: str) -> ToolOutcome:
    return ToolOutcome(f"Error: {message}", ep.TOOL_STATUS_ERROR, kind)


def _can_be_calculated(expression: str) -> bool:
    powers = expression.count("**")
    small = powers == 0 or (powers == 1 and _SMALL_POWER.search(expression) is not None)
    return small and len(expression) <= _MAX_EXPRESSION
