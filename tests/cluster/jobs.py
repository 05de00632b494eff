"""Indexed Jobs: one driver per index, started again by the rules of the Job's own manifest.

A driver that the box kills was preempted: its pod carries the condition DisruptionTarget, so the policy of
the manifest ignores the failure. Any other end counts as the manifest says by its exit code.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.pods import RESTART_SECONDS, spawn
from tests.unit.deploy.rendering import K8S, Workload, build
from tests.unit.deploy.test_jobs import action

_TEMPLATES = {"run": "run", "stream": "streams"}
"""Folders of the Jobs' templates, by the command that they run."""


def job_of(command: str) -> Workload:
    """The Job that `policysweep COMMAND` runs as, as kustomize renders it."""
    folder = K8S / "base" / "sweep" / _TEMPLATES[command]
    (job,) = (each for each in build(folder) if each["kind"] == "Job")
    return Workload(job, {"store": {}})


@dataclass
class Index:
    """One index of a Job, and what became of its pods."""

    number: int
    address: str
    ends: Counter[str] = field(default_factory=Counter)
    """Pods that ended without success, by what the manifest makes of that: Ignore, Count, FailJob."""
    done: bool = False
    process: asyncio.subprocess.Process | None = None
    disrupted: bool = False

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None


class IndexedJob:
    """A Job that is running: `policysweep COMMAND FILE --store URL --shard INDEX/COMPLETIONS`."""

    def __init__(
        self,
        command: str,
        file: Path,
        addresses: list[str],
        env: Mapping[str, str],
        options: Sequence[str],
        logs: Path,
    ) -> None:
        """One index for each address."""
        self.name = command
        self.workload = job_of(command)
        self.indexes = [Index(number, address) for number, address in enumerate(addresses)]
        self._file, self._env, self._options, self._logs = file, env, options, logs

    @property
    def ends(self) -> Counter[str]:
        """Ends of pods without success over all indexes."""
        return sum((index.ends for index in self.indexes), Counter())

    async def run(self) -> None:
        """Run until every index is complete. AssertionError when one failed for good."""
        async with asyncio.TaskGroup() as group:
            for index in self.indexes:
                group.create_task(self._run_index(index))

    def disrupt(self, index: Index, number: int) -> None:
        """Send a signal to the pod of an index. After SIGKILL it was preempted, after SIGTERM its exit code
        decides.
        """
        assert index.process is not None
        index.disrupted = number == signal.SIGKILL
        index.process.send_signal(number)

    async def stop(self) -> None:
        """End all pods with the box."""
        for index in self.indexes:
            if index.process is not None and index.process.returncode is None:
                index.process.kill()
                await index.process.wait()

    async def _run_index(self, index: Index) -> None:
        log = self._logs / f"{self.name}-{index.number}.log"
        while not index.done:
            index.disrupted = False
            index.process = await spawn(self._command(index), self._env, log)
            code = await index.process.wait()
            if code == 0:
                index.done = True
                return
            self._judge(index, code if code > 0 else 128 - code, log)
            # As the Job's controller does: each failure that counts doubles the wait.
            await asyncio.sleep(RESTART_SECONDS * 2 ** max(0, index.ends["Count"] - 1))

    def _judge(self, index: Index, code: int, log: Path) -> None:
        what = action(self.workload, code, disrupted=index.disrupted)
        index.ends[what] += 1
        lost = what == "FailJob" or index.ends["Count"] > self.workload.spec["backoffLimitPerIndex"]
        assert not lost, (
            f"index {index.number} of {self.name} failed, exit code {code}: "
            f"{log.read_text('utf-8', 'replace')[-1500:]}"
        )

    def _command(self, index: Index) -> list[str]:
        words = self.workload.arguments(
            JOB_COMPLETION_INDEX=str(index.number), SHARDS=str(len(self.indexes)), **self._env
        )
        mounted = f"/etc/policysweep/{self._file.name}"
        assert mounted in words
        words = [word.replace(mounted, str(self._file)).replace("0.0.0.0", index.address) for word in words]
        return [sys.executable, "-m", "policysweep", *words, *self._options]
