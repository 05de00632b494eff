"""pass^k: the probability that k trials of a task all succeed (Yao et al. 2024, tau-bench, arXiv 2406.12045).

Estimated without bias from n >= k trials of which c succeeded as C(c, k) / C(n, k), and averaged over the
tasks. For a task with fewer than k trials it is undefined: the task is left out and counted, because neither
a guess nor a zero would be true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, fsum


@dataclass(frozen=True, slots=True)
class PassK:
    """pass^k over `tasks` tasks; `left_out` tasks had fewer than k trials. `value` is None without tasks."""

    k: int
    value: float | None
    tasks: int
    left_out: int


def pass_hat_k(trials: Mapping[str, Sequence[bool]], k: int) -> PassK:
    """pass^k of the successes of each task's completed trials, in any order.

    A trial that was not completed is simply not in the list. Raises ValueError for k < 1, and for a success
    that is not a bool: rewards between 0 and 1 must not be added up to successes.
    """
    if k < 1:
        raise ValueError(f"pass^k needs k of at least 1, not {k}")
    for task, successes in trials.items():
        if not all(isinstance(success, bool) for success in successes):
            raise ValueError(f"task {task!r}: each trial is True or False, not {list(successes)}")
    values = [
        comb(sum(successes), k) / comb(len(successes), k)
        for successes in trials.values()
        if len(successes) >= k
    ]
    value = fsum(values) / len(values) if values else None
    return PassK(k, value, len(values), len(trials) - len(values))
