"""Five scenarios of the public DRIP-R data set, end to end. They are not ours and not checked in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer

pytestmark = pytest.mark.e2e

DATA = Path(os.environ.get("POLICYSWEEP_SHARED_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
SAMPLE = DATA / "dripr" / "sample_scenarios.jsonl"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    if not SAMPLE.exists():
        pytest.skip(f"the public sample is not at {SAMPLE}; POLICYSWEEP_SHARED_DATA names its folder")
    # The worlds that are made are kept beside the data set, and the original may be read-only.
    return Path(shutil.copy(SAMPLE, tmp_path / SAMPLE.name))


def test_a_data_set_without_worlds_says_how_to_make_them(make_sweep: Any, sample: Path) -> None:
    sweep = make_sweep(dataset=str(sample), scenarios={})
    code, output = sweep.run()
    assert code == 2
    assert "policysweep dataset worlds" in output
    assert not sweep.folder.exists()


async def test_the_five_real_scenarios_run(
    make_sweep: Any, sample: Path, command: Callable[..., tuple[int, str]]
) -> None:
    import asyncio

    async with RehearsalServer(RehearsalConfig()) as server:
        made = await asyncio.to_thread(
            command,
            "dataset",
            "worlds",
            str(sample),
            "--model-url",
            server.url,
            "--model",
            "rehearsal-fair",
        )
    assert made[0] == 0, made[1]
    sweep = make_sweep(dataset=str(sample), scenarios={})
    code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    assert len(sweep.records) == 10
    assert sweep.verify()[0] == 0
