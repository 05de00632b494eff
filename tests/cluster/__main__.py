"""`python -m tests.cluster [--short] [--seed N]`: a cluster in a box, as `make cluster-test` runs it."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.cluster.figures import tables
from tests.cluster.installation import FULL, SHORT
from tests.cluster.running import run_box


def main() -> None:
    """Run it, print the figures; the logs are kept when it fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--short", action="store_true", help="about a minute instead of several")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults; a new one if left out")
    parser.add_argument("--keep", action="store_true", help="keep the folder of a run that succeeds")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10_000) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="policysweep-box-"))
    console = Console()
    try:
        figures = asyncio.run(run_box(folder, SHORT if options.short else FULL, seed))
    except* (AssertionError, TimeoutError) as failed:
        for error in failed.exceptions:
            console.print(f"[red]failed[/red]: {error!r}", highlight=False)
        console.print(f"again with --seed {seed}; logs in {folder}", highlight=False, soft_wrap=True)
        sys.exit(1)
    console.print(*tables(figures, seed), sep="\n")
    if options.keep:
        console.print(f"logs in {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
