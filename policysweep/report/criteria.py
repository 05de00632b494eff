"""What a run is judged by: a rubric's metrics, and which of them sum up to a dimension on which side.

A metric is a column, in the order of the rubric. A *side* says whose behaviour counts:

    AGENT      the agent's; what an agent's scores are made of
    CUSTOMER   the simulated customer's; the quality of the simulator, never part of an agent's score
    POOLED     both together, as the DRIP-R paper defines its dimensions; shown beside, labelled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property

import numpy as np

from policysweep.report.statistics import FloatArray
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2

LOWEST, HIGHEST = 1, 5
"""The scale of every score."""


class Side(Enum):
    """Whose behaviour counts; the value is the roles whose scores are taken."""

    AGENT = frozenset({ep.ROLE_AGENT})
    CUSTOMER = frozenset({ep.ROLE_CUSTOMER})
    POOLED = frozenset({ep.ROLE_AGENT, ep.ROLE_CUSTOMER})


class Criteria:
    """A rubric, looked at by column, panel and dimension."""

    def __init__(self, rubric: judge_pb2.Rubric) -> None:
        self.rubric = rubric
        self.metrics = tuple(metric.key for metric in rubric.metrics)
        """Keys of the metrics: the name of each column."""
        self.column = {key: column for column, key in enumerate(self.metrics)}
        self.dimensions = tuple(dimension.key for dimension in rubric.dimensions)
        self.panels = {panel.key: panel.digest for panel in rubric.panels}
        """Digest of each panel."""

    @property
    def ref(self) -> str:
        """For example "drip-r@1"."""
        return f"{self.rubric.ref.name}@{self.rubric.ref.version}"

    @cached_property
    def asked(self) -> Mapping[tuple[str, str], tuple[int, frozenset[int]]]:
        """Column and roles of each metric by (panel, metric)."""
        return {
            (metric.panel, metric.key): (column, frozenset(metric.subjects))
            for column, metric in enumerate(self.rubric.metrics)
        }

    def columns(self, side: Side) -> Sequence[int]:
        """Columns of the metrics that look at a side."""
        metrics = enumerate(self.rubric.metrics)
        return [column for column, metric in metrics if not side.value.isdisjoint(metric.subjects)]

    def members(self, dimension: str, side: Side) -> Sequence[int]:
        """Columns of a dimension's metrics that look at a side; empty for a dimension without any."""
        return [column for column in self.columns(side) if self.rubric.metrics[column].dimension == dimension]

    def by_dimension(self, side: Side) -> dict[str, Sequence[int]]:
        """Columns of the metrics that look at a side, for each dimension that has any."""
        found = {dimension: self.members(dimension, side) for dimension in self.dimensions}
        return {dimension: columns for dimension, columns in found.items() if columns}

    def weights(self, columns: Sequence[int]) -> FloatArray:
        """Weights [metrics] of the mean over some columns."""
        weights = np.zeros(len(self.metrics))
        weights[list(columns)] = 1.0 / max(len(columns), 1)
        return weights
