"""Makes all worlds that are missing, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from policysweep.datasets.load import Dataset
from policysweep.datasets.making.ask import ATTEMPTS, Failed, Made, ask_world
from policysweep.datasets.making.store import WorldsFile
from policysweep.errors import InputError
from policysweep.models.chat import ChatModel

Progress = Callable[[Made | Failed], object]


async def make_worlds(
    dataset: Dataset,
    missing: list[str],
    model: ChatModel,
    store: WorldsFile,
    *,
    concurrency: int,
    progress: Progress = lambda _: None,
) -> None:
    """Make the worlds of the tasks in `missing` and keep each in `store` as soon as it is made.

    Every task is asked for once, in the words of its first scenario. `progress` is told of each task.

    Raises ModelServerError as soon as the server fails, and InputError at the end when the model had no valid
    answer for some tasks. What was made until then is kept.
    """
    first = {scenario.task_id: scenario for scenario in reversed(dataset.scenarios)}
    waiting = iter([first[task_id] for task_id in missing])
    failed: list[Failed] = []

    async def work() -> None:
        for scenario in waiting:
            result = await ask_world(model, scenario)
            if isinstance(result, Made):
                store.add(result)
            else:
                failed.append(result)
            progress(result)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(missing))):
                group.create_task(work())
    except ExceptionGroup as faults:  # one fault stops all workers; it is the one to tell
        raise faults.exceptions[0] from None
    if failed:
        raise InputError(_failure(failed, len(missing), store))


def _failure(failed: list[Failed], asked: int, store: WorldsFile) -> str:
    lines = [
        f"  {each.task_id}: {'; '.join(each.faults[:3])}" for each in sorted(failed, key=lambda f: f.task_id)
    ]
    return "\n".join(
        [
            f"the model gave no valid world for {len(failed)} of {asked} tasks in {ATTEMPTS} attempts each:",
            *lines,
            f"Worlds that it made are kept in {store.path}. Run again for the rest, or with another model.",
        ]
    )
