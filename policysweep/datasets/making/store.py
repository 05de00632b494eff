"""Keeps made worlds in a JSON Lines file: `{"task_id", "world", "made_by": {"model", "rehearsal"}}` a line.

The file is replaced whole with each world, so that it is valid at any moment and a run can be stopped at any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policysweep.datasets.files import jsonl, read_records, write_whole
from policysweep.datasets.making.ask import Made
from policysweep.datasets.problems import refuse_errors
from policysweep.datasets.rules.dataset import worlds
from policysweep.errors import InputError


class WorldsFile:
    """A worlds file that is being filled."""

    def __init__(self, path: Path, model: str) -> None:
        """Open the file, with the worlds that it holds already.

        Raises InputError when it is not sound, or cannot be written: before a model is asked for anything.
        """
        self.path = path
        self._model = model
        self._lines: dict[str, Any] = {}
        if path.is_file():
            records, problems = read_records(path)
            sound, faults = worlds(records)
            refuse_errors(str(path), problems + faults)
            self._lines = {record.value["task_id"]: record.value for record in sound}
        self._probe()

    @property
    def task_ids(self) -> set[str]:
        """The tasks that have a world."""
        return set(self._lines)

    def add(self, made: Made) -> None:
        """Keep a world. Raises InputError when the file cannot be written; its old content stays."""
        made_by = {"model": self._model, "rehearsal": made.rehearsal}
        self._lines[made.task_id] = {"task_id": made.task_id, "world": made.world, "made_by": made_by}
        self._write(self.path, jsonl(line for _, line in sorted(self._lines.items())))

    def _probe(self) -> None:
        probe = self.path.with_name(f".{self.path.name}.probe")
        self._write(probe, b"")
        probe.unlink()

    def _write(self, path: Path, content: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as fault:
            told = f"cannot write {self.path}: {fault.strerror}; name a file elsewhere with --output"
            raise InputError(told) from fault
