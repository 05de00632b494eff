"""What processes cost: CPU seconds and memory, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_mb(pids: Iterable[int]) -> Mapping[str, float]:
    """Memory of processes together, in MB: `pss` counts shared pages once, `rss` once per process."""
    total = {"Pss": 0, "Rss": 0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            key, _, value = line.partition(":")
            if key in total:
                total[key] += int(value.split()[0])
    return {name.lower(): kilobytes / 1024 for name, kilobytes in total.items()}
