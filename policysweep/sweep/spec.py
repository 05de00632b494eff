"""The sweep file: what a person writes to describe a sweep. All defaults of a sweep stand here.

Settings of a model that the file leaves out are the service's own defaults, see `policysweep.config`.
API keys are never in the file: `api_key_env` names the environment variable that holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, field_validator, model_validator

from policysweep.errors import InputError
from policysweep.sweep.model_spec import AgentSpec, JudgeSpec, ModelSpec, PlayedByCustomer, ServedSpec
from policysweep.sweep.spec_fields import (
    INT32_MAX,
    Count,
    Names,
    Part,
    PersonaName,
    RubricName,
    RunName,
    Seconds,
    distinct,
)
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, simulator_pb2
from policysweep.yaml_source import read_yaml, validate


class DatasetSpec(Part):
    """Which data set is played."""

    source: str = Field(
        default="builtin",
        min_length=1,
        description="`builtin`, a path, or `hub:OWNER/NAME`. "
        "A relative path is looked for beside the sweep file first.",
    )
    worlds: str | None = Field(
        default=None,
        description="File of order worlds, found like `source`; the worlds beside the data set if left out.",
    )


class ScenarioFilter(Part):
    """Which scenarios of the data set are played; all when nothing is set."""

    tasks: Names | None = Field(default=None, description="Ids of the tasks to play.")
    personas: Names | None = Field(default=None, description="Ids of the customer personas to play.")
    limit: Count | None = Field(
        default=None,
        description="Play at most this many scenarios, spread evenly over the tasks and personas.",
    )


class AgentPersonaSpec(Part):
    """How the five agent personas are assigned, always from scenario and trial and never from the model."""

    assignment: Literal["balanced", "fixed", "swept"] = Field(
        default="balanced",
        description="balanced: each persona equally often over tasks and customer personas; "
        "fixed: `persona` everywhere; swept: every unit with every persona.",
    )
    persona: PersonaName | None = Field(default=None, description="The persona of a fixed assignment.")

    @model_validator(mode="after")
    def _persona_where_fixed(self) -> AgentPersonaSpec:
        if self.assignment == "fixed" and self.persona is None:
            raise ValueError("assignment fixed needs a persona")
        if self.assignment != "fixed" and self.persona is not None:
            raise ValueError(f"persona belongs to assignment fixed, not to {self.assignment}")
        return self

    def assignment_message(self) -> run_pb2.PersonaAssignment.ValueType:
        """The assignment as the contract names it."""
        return run_pb2.PersonaAssignment.Value(f"PERSONA_ASSIGNMENT_{self.assignment.upper()}")

    def persona_message(self) -> ep.AgentPersona.ValueType:
        """The fixed persona as the contract names it; unspecified when the assignment is not fixed."""
        return ep.AgentPersona.Value(f"AGENT_PERSONA_{self.persona or 'UNSPECIFIED'}")


class LimitsSpec(Part):
    """Limits of one conversation."""

    max_turns: Count = Field(default=20, description="Customer turns, the opening included (DRIP-R: 20).")
    max_tool_rounds: Count = Field(default=5, description="Tool rounds of one agent turn (DRIP-R: 5).")
    max_errors: Count = Field(
        default=3, description="Errors of one side before the conversation ends (DRIP-R: 3)."
    )
    max_repeated_calls: Count = Field(
        default=3, description="Repetitions of one call before the conversation ends."
    )
    max_tokens: Count = Field(
        default=400_000, description="Prompt and completion tokens, all models together."
    )
    agent_call_seconds: Seconds = Field(
        default=120.0, description="Deadline of one call to the agent, in seconds."
    )
    unit_seconds: Seconds = Field(
        default=900.0, description="Deadline of the whole conversation, in seconds."
    )

    @model_validator(mode="after")
    def _deadlines_nest(self) -> LimitsSpec:
        if self.agent_call_seconds > self.unit_seconds:
            raise ValueError(
                f"agent_call_seconds ({self.agent_call_seconds:g}) must not be longer than "
                f"unit_seconds ({self.unit_seconds:g})"
            )
        return self

    def message(self) -> simulator_pb2.EpisodeLimits:
        """The limits that travel to the simulator: all but `unit_seconds`, which is the driver's deadline."""
        return simulator_pb2.EpisodeLimits(**self.model_dump(exclude={"unit_seconds"}))


class SweepSpec(PlayedByCustomer):
    """A sweep: agents x scenarios x trials."""

    name: RunName = Field(description="Name of the run: its folder in the store.")
    dataset: DatasetSpec = Field(
        default=DatasetSpec(),
        description="The data set; the short form `dataset: SOURCE` sets only the source.",
    )
    scenarios: ScenarioFilter = Field(
        default=ScenarioFilter(), description="Which of its scenarios are played."
    )
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1)] = Field(
        description="The agents under test."
    )
    judges: tuple[JudgeSpec, ...] = Field(
        default=(), description="Who judges the conversations once they are played; nobody if left out."
    )
    rubric: RubricName = Field(default="drip-r@1", description="What the judges judge by: NAME@VERSION.")
    agent_persona: AgentPersonaSpec = Field(
        default=AgentPersonaSpec(), description="How agent personas are assigned."
    )
    trials: Count = Field(default=1, description="Conversations per scenario, agent and agent persona.")
    seed: Annotated[StrictInt, Field(ge=0, le=INT32_MAX)] = Field(
        default=0, description="Seed of the sweep, from which the seed of each scenario and trial is derived."
    )
    limits: LimitsSpec = Field(default=LimitsSpec(), description="Limits of one conversation.")
    concurrency: Count = Field(default=64, description="Conversations in flight.")
    max_attempts: Count = Field(
        default=3,
        description="Attempts per unit and invocation; only faults of the infrastructure are tried again.",
    )

    outage_seconds: Seconds = Field(
        default=300.0,
        description="How long an agent or its model server may answer nobody before its units are left "
        "for the next run, in seconds.",
    )

    @field_validator("dataset", mode="before")
    @classmethod
    def _short_dataset(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, str) else value

    @field_validator("agents", "judges")
    @classmethod
    def _distinct_names(cls, services: tuple[ServedSpec, ...]) -> tuple[ServedSpec, ...]:
        distinct(tuple(service.name for service in services))
        return services

    def check_environment(self, environ: Mapping[str, str]) -> None:
        """InputError that names each environment variable that the sweep needs and that is not set."""
        users: list[tuple[str, ModelSpec]] = [(f"agent {agent.name}", agent) for agent in self.agents]
        users += [(f"judge {judge.name}", judge) for judge in self.judges]
        users += [("customer", self.customer)] if self.customer else []
        problems = [
            f"{user}: api_key_env names {spec.api_key_env}, which is not set in the environment"
            for user, spec in users
            if spec.api_key_env and not environ.get(spec.api_key_env)
        ]
        if problems:
            raise InputError("\n".join(problems))


def load_spec(path: Path) -> SweepSpec:
    """Read a sweep file. InputError with one line `FILE:LINE: field: what is wrong` per problem."""
    spec = validate(read_yaml(path), SweepSpec)
    found = {
        field: _beside(path, written)
        for field, written in spec.dataset.model_dump(exclude_none=True).items()
        if written != "builtin"
    }
    return spec.model_copy(update={"dataset": spec.dataset.model_copy(update=found)})


def _beside(sweep_file: Path, written: str) -> str:
    """A path relative to the sweep file's folder, if there is something; else as written."""
    candidate = sweep_file.parent / written
    return str(candidate) if candidate.exists() else written
