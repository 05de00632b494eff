"""Byte strings on disk, for what is too much to hold in memory.

Conversations wait here between their check and their place in a run, and verdicts until their unit's turn
comes in an export. Memory holds eight bytes for each.
"""

from __future__ import annotations

import tempfile
from array import array
from types import TracebackType


class Spool:
    """A list that only grows, kept in an unnamed temporary file. A context manager."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by __exit__
        self._ends = array("Q", [0])

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, data: bytes) -> int:
        """Add a byte string; gives its number. Raises OSError when the disk is full."""
        self._file.seek(self._ends[-1])
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))
        return len(self) - 1

    def read(self, number: int) -> bytes:
        """The byte string of this number."""
        start, end = self._ends[number : number + 2]
        self._file.seek(start)
        return self._file.read(end - start)
