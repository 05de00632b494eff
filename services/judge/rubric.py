"""A rubric: which metrics are asked in which panel, in which words. It is read from a TOML file and nothing
about it is known to the code: prompts, JSON schemas, parsing and the list of metrics derive from it.

    Rubric ── Dimension            what metrics are summed up under
           └─ Panel ── Metric      what one prompt asks, and its questions

docs/judging.md explains the file's keys; `rubric_files.py` reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2

SCALE = (1, 2, 3, 4, 5)
"""The scores that a judge may give."""

Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Requirement = Literal["resolution", "tool_calls", "agent_persona"]
"""What an episode must have for a metric to apply: a declared resolution, a tool call, a persona."""

_LEVELS: Mapping[str, judge_pb2.MetricLevel.ValueType] = {
    "conversation": judge_pb2.METRIC_LEVEL_CONVERSATION,
    "turn": judge_pb2.METRIC_LEVEL_TURN,
    "resolution": judge_pb2.METRIC_LEVEL_RESOLUTION,
}
_SUBJECTS: Mapping[str, ep.Role.ValueType] = {"agent": ep.ROLE_AGENT, "customer": ep.ROLE_CUSTOMER}
# The answer of a panel holds these beside its metrics.
_RESERVED = frozenset({"outcome", "goals", "agent_turns", "customer_turns", "turn", "justification"})
_PERSONAS = tuple(name.removeprefix("AGENT_PERSONA_") for name in ep.AgentPersona.keys()[1:])


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Metric(_Part):
    """One metric. `anchors` say what earns each score, 1 first; a derived metric has none."""

    key: Key
    title: Text
    dimension: Key
    level: Literal["conversation", "turn", "resolution"]
    subjects: tuple[Literal["agent", "customer"], ...] = ("agent",)
    requires: tuple[Requirement, ...] = ()
    derived: Literal["goals_met"] | None = None
    question: Text
    anchors: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.key in _RESERVED:
            raise ValueError(f"key {self.key!r} has another meaning in a panel's answer, choose another")
        if self.derived is None and len(self.anchors) != len(SCALE):
            raise ValueError(f"anchors must be five texts, for scores 1 to 5; there are {len(self.anchors)}")
        if self.derived is not None and self.anchors:
            raise ValueError("anchors must be left out: the judge does not give a derived score")
        if not self.subjects or len(set(self.subjects)) < len(self.subjects):
            raise ValueError("subjects must name agent, customer or both once")
        if self.level != "turn" and len(self.subjects) > 1:
            raise ValueError("subjects: only a metric of level turn can score both sides")
        if self.derived is not None and self.level == "turn":
            raise ValueError("level: a derived metric cannot be of level turn")
        return self

    @property
    def roles(self) -> tuple[ep.Role.ValueType, ...]:
        """Whose behaviour it scores."""
        return tuple(_SUBJECTS[subject] for subject in self.subjects)

    @property
    def needs(self) -> frozenset[Requirement]:
        """What an episode must have; a metric of the resolution always needs one."""
        return frozenset((*self.requires, *(("resolution",) if self.level == "resolution" else ())))


class Panel(_Part):
    """One panel. `outcome`: it also names the outcome. `goals`: it also judges the customer's goals.
    `weighted`: its scores are weighted by token probabilities where the model server tells them.
    """

    key: Key
    title: Text
    instruction: Text
    outcome: bool = False
    goals: bool = False
    weighted: bool = False
    metrics: tuple[Metric, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not (self.metrics or self.outcome or self.goals):
            raise ValueError("metrics are missing: the panel asks for nothing")
        for metric in self.metrics:
            if metric.derived == "goals_met" and not self.goals:
                raise ValueError(f"goals must be true: {metric.key} is derived from the goals met")
        return self


class Dimension(_Part):
    """What metrics are summed up under."""

    key: Key
    title: Text


class Rubric(_Part):
    """A rubric file. `digest` is the SHA-256 of its bytes, hex."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    version: int = Field(ge=1, lt=2**31)
    min_scale_mass: float = Field(0.5, ge=0, le=1)
    discipline: Text
    agent_personas: dict[str, Text]
    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    panels: tuple[Panel, ...] = Field(min_length=1)
    digest: str = Field(min_length=64, max_length=64)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if set(self.agent_personas) != set(_PERSONAS):
            raise ValueError(f"agent_personas must describe exactly {', '.join(_PERSONAS)}")
        for what, keys in (
            ("dimensions", [dimension.key for dimension in self.dimensions]),
            ("panels", [panel.key for panel in self.panels]),
            ("metrics", [metric.key for metric in self.metrics]),
        ):
            if twice := sorted({key for key in keys if keys.count(key) > 1}):
                raise ValueError(f"{what}: key {twice[0]!r} is used twice")
        known = {dimension.key for dimension in self.dimensions}
        for metric in self.metrics:
            if metric.dimension not in known:
                raise ValueError(f"metric {metric.key}: dimension {metric.dimension!r} is not in dimensions")
        for what in ("outcome", "goals"):
            if sum(getattr(panel, what) for panel in self.panels) > 1:
                raise ValueError(f"panels: only one panel can have {what} = true")
        return self

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def ref(self) -> str:
        """For example "drip-r@1"."""
        return f"{self.name}@{self.version}"

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics in the order of the file."""
        return tuple(metric for panel in self.panels for metric in panel.metrics)

    def panel_digest(self, panel: Panel, prompts: str) -> str:
        """SHA-256 over what `panel` asks, hex. `prompts` is the digest of the prompt templates.

        Titles, dimensions and other panels do not count: they do not change the question.
        """
        asked: dict[str, Any] = panel.model_dump(
            exclude={"title": True, "metrics": {"__all__": {"title", "dimension"}}}
        )
        if any("agent_persona" in metric.requires for metric in panel.metrics):
            asked["agent_personas"] = self.agent_personas
        content = {"panel": asked, "discipline": self.discipline, "prompts": prompts}
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def message(self, prompts: str, prompt_characters: int) -> judge_pb2.Rubric:
        """The rubric on the wire. The second number is `prompt.rubric_characters`."""
        return judge_pb2.Rubric(
            ref=judge_pb2.RubricRef(name=self.name, version=self.version),
            digest=self.digest,
            dimensions=[judge_pb2.Dimension(key=each.key, title=each.title) for each in self.dimensions],
            panels=[
                judge_pb2.Panel(
                    key=each.key,
                    title=each.title,
                    digest=self.panel_digest(each, prompts),
                    weighted=each.weighted,
                )
                for each in self.panels
            ],
            metrics=[_metric_message(panel, metric) for panel in self.panels for metric in panel.metrics],
            min_scale_mass=self.min_scale_mass,
            prompt_characters=prompt_characters,
        )


def _metric_message(panel: Panel, metric: Metric) -> judge_pb2.Metric:
    return judge_pb2.Metric(
        key=metric.key,
        dimension=metric.dimension,
        level=_LEVELS[metric.level],
        panel=panel.key,
        subjects=metric.roles,
        title=metric.title,
        question=metric.question,
        derived=metric.derived is not None,
    )
