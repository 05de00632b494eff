"""What processes cost: CPU seconds and memory, read from /proc.

`python -m bench.processes PID...` prints the memory of these processes every two seconds, one JSON line a
sample: a process of its own, because the kernel walks all their pages for it, and the reader pays.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 2.0


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


async def memory_samples(pids: Iterable[int]) -> AsyncGenerator[Mapping[str, float]]:
    """What `memory_mb` says, every two seconds, until the caller stops listening."""
    argv = (sys.executable, "-m", __name__, *map(str, pids))
    watcher = await asyncio.create_subprocess_exec(*argv, stdout=PIPE)
    assert watcher.stdout is not None
    try:
        async for line in watcher.stdout:
            yield json.loads(line)
    finally:
        watcher.kill()
        await watcher.wait()


def main(pids: list[int]) -> None:
    """Print samples until killed."""
    while True:
        print(json.dumps(memory_mb(pids)), flush=True)
        time.sleep(_SAMPLE_SECONDS)


if __name__ == "__main__":
    main([int(pid) for pid in sys.argv[1:]])
