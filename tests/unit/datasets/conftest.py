"""Data sets to load and to break."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.files import jsonl
from policysweep.datasets.load import Dataset, load
from policysweep.datasets.sources import RawDataset, read


@pytest.fixture(scope="session")
def builtin() -> Dataset:
    return load("builtin")


@pytest.fixture(scope="session")
def raw_builtin() -> RawDataset:
    return read("builtin")


@pytest.fixture
def scenarios(raw_builtin: RawDataset) -> list[Any]:
    """Two tasks as three personas play them, to be changed at will."""
    return [
        copy.deepcopy(record.value)
        for record in raw_builtin.scenarios[:20]
        if record.value["persona"]["Location"] in ("Norway", "Poland", "Ghana")
    ]


@pytest.fixture
def worlds(raw_builtin: RawDataset) -> list[Any]:
    """The world lines of those tasks."""
    return [copy.deepcopy(record.value) for record in raw_builtin.worlds[:2]]


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes values as JSON Lines; returns the file."""

    def to_file(values: list[Any], name: str = "mine.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl(values))
        return path

    return to_file


@pytest.fixture(scope="session")
def public_sample() -> Path:
    """Five scenarios of the public data set."""
    beside = Path(__file__).parents[4] / "shared" / "data"
    path = Path(os.environ.get("POLICYSWEEP_SHARED_DATA", beside)) / "dripr" / "sample_scenarios.jsonl"
    if not path.is_file():
        pytest.skip("the public sample scenarios are not at POLICYSWEEP_SHARED_DATA")
    return path
