"""Differences between two sides that met the same cases: two agents, two judges, or two runs.

Each row of the table is one matched conversation and holds second minus first. Rows of one task are not
independent, so standard errors are clustered by task, and the t distribution has T - 1 degrees of freedom
(Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640; Cameron and Miller 2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policysweep.report.means import ColumnMeans, Mean
from policysweep.report.statistics import FloatArray, holm


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of second minus first, and its p-value adjusted for the figures that were tested together."""

    mean: Mean
    p_holm: float | None


def paired_differences(
    differences: ColumnMeans, figures: Mapping[str, FloatArray]
) -> dict[str, PairedDifference]:
    """The difference in each figure, with p-values adjusted by Holm over the figures that could be tested.

    A figure is given by its weights [metrics]: a metric by 1 at its place, a dimension by 1 / m at the places
    of its m metrics.
    """
    means = {name: differences.combine(weights) for name, weights in figures.items()}
    adjusted = holm({name: mean.p_value for name, mean in means.items()})
    return {name: PairedDifference(mean, adjusted[name]) for name, mean in means.items()}
