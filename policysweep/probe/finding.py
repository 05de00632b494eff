"""What a check finds, and what a capability is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, get_args

from policysweep.probe.server import ModelServer

Role = Literal["agent", "customer", "judge"]
"""What a model is wanted for."""
ROLES: Sequence[Role] = get_args(Role)


class Verdict(StrEnum):
    """Whether a server can do something."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"

    def suffices(self, least: Verdict) -> bool:
        """Whether this is as much as `least`, which is YES or PARTLY."""
        return self is Verdict.YES or (self is Verdict.PARTLY and least is Verdict.PARTLY)


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict with what was seen, in a sentence.

    `mend` is what to change, flags of `vllm serve` where they are known; `data` holds numbers for a machine.
    """

    verdict: Verdict
    detail: str
    mend: str = ""
    data: Mapping[str, int | float | str] = field(default_factory=dict)


class Check(Protocol):
    """Finds out about one capability."""

    async def __call__(self, server: ModelServer) -> Finding:
        """Ask the server. May raise what the model client raises: `run.py` makes a finding of it."""
        ...


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that a server can do or not.

    `needed_by` are the roles that cannot be played without it, each with the least that it takes.
    `meaning` tells what policysweep does with it. `mend` is the remedy of findings that name none themselves.
    """

    name: str
    check: Check
    meaning: str
    needed_by: Mapping[Role, Verdict] = field(default_factory=dict)
    mend: str = ""


def yes(detail: str, **data: int | float | str) -> Finding:
    """It can."""
    return Finding(Verdict.YES, detail, data=data)


def partly(detail: str, mend: str = "", **data: int | float | str) -> Finding:
    """It can, with a limit."""
    return Finding(Verdict.PARTLY, detail, mend, data)


def no(detail: str, mend: str = "", **data: int | float | str) -> Finding:
    """It cannot."""
    return Finding(Verdict.NO, detail, mend, data)


def unknown(detail: str) -> Finding:
    """It could not be found out."""
    return Finding(Verdict.UNKNOWN, detail)
