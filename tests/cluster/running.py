"""One run: the box is opened, works, is disturbed, and has to prove that nothing was lost or done twice."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cluster import installation as inst
from tests.cluster.box import REPLICA, Box
from tests.cluster.disturbing import STREAMS, SWEEP, Fault, plan
from tests.cluster.figures import Figures, collect
from tests.cluster.names import name_server
from tests.cluster.pods import Clock, Tell

_PROOF_SECONDS = 90
_SETTLE_SECONDS = 60


async def run_box(folder: Path, size: inst.Size, seed: int) -> Figures:
    """Run a cluster in `folder`, which keeps all logs; gives what was found.

    AssertionError when a proof fails, TimeoutError when it takes longer than the size allows.
    """
    clock = Clock()

    def tell(event: str) -> None:
        print(f"{clock():6.1f} s  {event}", flush=True)  # noqa: T201 - this is a program's output

    tell(f"seed {seed}; logs in {folder}")
    async with asyncio.timeout(size.seconds), _open_box(folder, size, seed, tell) as box:
        tell(f"{len(box.pods)} pods are ready")
        await _work_disturbed(box, plan(seed, size.kills, size.store_restarts))
        tell("the Jobs are complete")
        await _settle(box)
        proofs = [await _prove(box, *question) for question in _questions(box.installation)]
        figures = await collect(box, [proof for found in proofs for proof in found], clock())
    _check(figures, folder, size)
    return figures


@asynccontextmanager
async def _open_box(folder: Path, size: inst.Size, seed: int, tell: Tell) -> AsyncIterator[Box]:
    async with name_server() as names:
        box = Box(folder, names, size, tell, random.Random(seed + 1))
        try:
            await box.open()
            yield box
        finally:
            await box.close()


async def _work_disturbed(box: Box, faults: Sequence[Fault]) -> None:
    tasks = await asyncio.to_thread(box.installation.stream_tasks)
    async with asyncio.TaskGroup() as group:
        group.create_task(box.work())
        for work in (SWEEP, STREAMS):
            group.create_task(_disturb(box, work, [each for each in faults if each.work == work], tasks))


async def _disturb(box: Box, work: str, faults: Sequence[Fault], tasks: int) -> None:
    for fault in faults:
        while await progress(box, work, tasks) < fault.share:
            assert not box.over(work), f"{work} was over before its fault {fault}"
            await asyncio.sleep(0.3)
        await box.inflict(fault)


async def progress(box: Box, work: str, tasks: int) -> float:
    """The share of a work that is done; judging is a quarter of a sweep."""
    if work == STREAMS:
        return await box.watch.units_done(inst.STREAMS, "stream") / tasks
    played, judged = [await box.watch.units_done(inst.SWEEP, stage) for stage in ("play", "judge")]
    return (0.75 * played + 0.25 * judged) / box.size.units


async def _settle(box: Box) -> None:
    """Wait until what was killed last is back, and Prometheus has seen everything."""
    async with asyncio.timeout(_SETTLE_SECONDS):
        await asyncio.gather(*(pod.ready.wait() for pod in box.pods.values()))
    await asyncio.sleep(2.5)


Question = tuple[Sequence[str], Mapping[str, str]]
"""Arguments of `policysweep`, and what it has to say, by what that proves."""


def _questions(install: inst.Installation) -> Sequence[Question]:
    store = install.environment["STORE"]
    sweep = {
        "sweep": r"(\d+) of \1 planned units have exactly one record\.",
        "verdicts": r"(\d+) of \1 verdicts that count are there\.",
    }
    streams = {
        "streams": r"(\d+) of \1 planned tasks have exactly one record\.",
        "banks": r"(\d+) banks hold exactly these revisions, each once\.",
    }
    bank = ("--bank", install.bank, *install.tls("driver"))
    return [
        (("verify", f"{store}/{inst.SWEEP}", "--verdicts"), sweep),
        (("verify", f"{store}/{inst.STREAMS}", *bank), streams),
    ]


async def _prove(box: Box, arguments: Sequence[str], expected: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is proved, each by a line of the answer."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "policysweep", *arguments),
        env={**os.environ, **box.installation.environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), _PROOF_SECONDS)
    said = output.decode()
    assert process.returncode == 0, said
    found = {name: re.search(pattern, said) for name, pattern in expected.items()}
    assert all(found.values()), said
    return [(name, match[0]) for name, match in found.items() if match]


def _check(figures: Figures, folder: Path, size: inst.Size) -> None:
    """What has to hold beside the proofs."""
    assert figures.units == size.units
    assert figures.calls_of_added > 0, f"{REPLICA} got no work"
    drained = figures.drained
    assert drained is not None
    assert (drained.code, drained.cut_off) == (0, False), f"the drain cut calls off: {drained}"
    assert figures.calls_by_code["INTERNAL"] == 0, "a service answered INTERNAL: see its log"
    assert not figures.alerts["firing now"], f"alerts fire: {figures.alerts['firing now']}"
    assert not figures.rules_failed, f"rules of Prometheus failed: {figures.rules_failed}"
    stacks = [log.name for log in folder.glob("*.log") if "Traceback" in log.read_text("utf-8", "replace")]
    assert not stacks, f"stack traces in {', '.join(stacks)}"
