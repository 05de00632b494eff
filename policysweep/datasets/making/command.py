"""What `policysweep dataset worlds` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from policysweep.datasets.load import Dataset, load
from policysweep.datasets.making.ask import Failed, Made
from policysweep.datasets.making.run import make_worlds
from policysweep.datasets.making.store import WorldsFile
from policysweep.models.openai_api import OpenAIChatModel

Tell = Callable[[str], object]


def make_missing_worlds(
    source: str,
    *,
    model_url: str,
    model: str,
    api_key: str | None,
    output: Path | None,
    concurrency: int,
    tell: Tell,
) -> None:
    """Make the worlds that a data set lacks, or with `output` that this file lacks; `tell` gets each step.

    Raises InputError and ModelServerError as `make_worlds` does.
    """
    dataset = load(source)
    if output is None and not dataset.missing_worlds:
        tell(f"{source}: all {len(dataset.task_ids)} tasks have a world")
        return
    store = WorldsFile(output or dataset.made_worlds, model)
    known = store.task_ids if output else dataset.worlds.keys()
    missing = [task_id for task_id in dataset.task_ids if task_id not in known]
    client = OpenAIChatModel(base_url=model_url, model=model, api_key=api_key)
    asyncio.run(_make(dataset, missing, client, store, concurrency, tell))
    tell(f"{store.path}: {len(store.task_ids)} worlds")


async def _make(
    dataset: Dataset,
    missing: list[str],
    client: OpenAIChatModel,
    store: WorldsFile,
    concurrency: int,
    tell: Tell,
) -> None:
    async with client as model:
        await make_worlds(
            dataset,
            missing,
            model,
            store,
            concurrency=concurrency,
            progress=lambda result: tell(_outcome(result)),
        )


def _outcome(result: Made | Failed) -> str:
    if isinstance(result, Failed):
        return f"{result.task_id}: no valid answer"
    mark = " by the rehearsal model" if result.rehearsal else ""
    return f"{result.task_id}: made{mark}, attempt {result.attempts}"
