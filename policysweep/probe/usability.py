"""From findings to what a model can be used for; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policysweep.models.prompted_tools import ToolMode
from policysweep.probe.capabilities import (
    ALL,
    CHAT,
    SERVED,
    TOOL_RESULTS,
    TOOLS_AUTO,
    TOOLS_PROMPTED,
    TOOLS_REQUIRED,
)
from policysweep.probe.finding import Role, Verdict
from policysweep.probe.run import ProbeResult

_CALLERS: Sequence[Role] = ("agent", "customer")


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether a model can play a role. `lacks` names what is missing; `tool_mode` is None without tools."""

    role: Role
    lacks: Sequence[str]
    tool_mode: ToolMode | None = None

    @property
    def usable(self) -> bool:
        """Whether nothing is missing."""
        return not self.lacks


def usability(result: ProbeResult, role: Role) -> Usability:
    """What the findings mean for `role`."""
    for first in (SERVED, CHAT):
        if not result.verdict(first).suffices(Verdict.PARTLY):
            return Usability(role, [first.name])
    lacks = [
        each.name
        for each in ALL
        if role in each.needed_by and not result.verdict(each).suffices(each.needed_by[role])
    ]
    if role not in _CALLERS:
        return Usability(role, lacks)
    mode = tool_mode(result)
    if mode is None:
        lacks.append("tools")
    return Usability(role, lacks, mode)


def tool_mode(result: ProbeResult) -> ToolMode | None:
    """How the model can be given tools; None when neither way works.

    A model that rather talks than calls is given native tools where the server can make it call: that it
    does not call is a result. Where the server cannot, tools may be dropped on the way: the prompt it is.
    """
    auto = result.verdict(TOOLS_AUTO)
    calls = auto is Verdict.YES or (auto is Verdict.PARTLY and result.verdict(TOOLS_REQUIRED) is Verdict.YES)
    if calls and result.verdict(TOOL_RESULTS).suffices(Verdict.PARTLY):
        return "native"
    return "prompted" if result.verdict(TOOLS_PROMPTED) is Verdict.YES else None
