"""What goes wrong, and when: drawn from a seed, and tied to the work that is done, not to a clock.

A slow machine is disturbed later and just as often.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

SWEEP, STREAMS = "sweep", "streams"
KINDS = ("simulator", "agent", "judge", "policybank", "model", "driver", "stream driver")
"""The kinds of process that are killed."""

_OF_STREAMS = ("policybank", "stream driver")
_BEGIN = 0.04
_END = {SWEEP: 0.82, STREAMS: 0.65}
"""The shares of a work between which faults fall. Streams end together, so theirs fall early."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong once a share of some work is done."""

    what: str
    """kill, preempt, restart, add or drain."""
    kind: str
    """To which kind of process."""
    work: str
    share: float


def plan(seed: int, kills: int, store_restarts: int) -> Sequence[Fault]:
    """The faults of a run, in order.

    Each kind of process is killed `kills` times, a driver is told to stop once, the store is killed
    `store_restarts` times, and one replica of an agent comes and another goes. The last to be killed is a
    judge, while the sweep is judged.
    """
    draw = random.Random(seed)
    sweep = [
        ("kill", kind) for kind in KINDS if kind not in ("policybank", "stream driver") for _ in range(kills)
    ]
    sweep.remove(("kill", "judge"))
    sweep += [("preempt", "driver")] + [("restart", "store")] * store_restarts
    draw.shuffle(sweep)
    third = len(sweep) // 3
    sweep.insert(third, ("add", "agent"))
    sweep.insert(2 * third + 2, ("drain", "agent"))
    sweep.append(("kill", "judge"))
    streams = [("kill", kind) for kind in _OF_STREAMS for _ in range(kills)]
    draw.shuffle(streams)
    return [*_spread(draw, SWEEP, sweep), *_spread(draw, STREAMS, streams)]


def _spread(draw: random.Random, work: str, faults: Sequence[tuple[str, str]]) -> Sequence[Fault]:
    """Faults over the length of a work, each somewhere in a part of its own."""
    width = (_END[work] - _BEGIN) / len(faults)
    return [
        Fault(what, kind, work, _BEGIN + (at + draw.random()) * width)
        for at, (what, kind) in enumerate(faults)
    ]
