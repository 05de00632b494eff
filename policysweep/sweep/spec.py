"""The sweep file: what a person writes to describe a sweep. All defaults of a sweep stand here.

Settings of a model that the file leaves out are the service's own defaults, see `policysweep.config`.
API keys are never in the file: `api_key_env` names the environment variable that holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator

from policysweep.errors import InputError
from policysweep.models.prompted_tools import ToolMode
from policysweep.sweep.spec_fields import (
    INT32_MAX,
    AgentName,
    Count,
    ModelUrl,
    Names,
    PersonaName,
    RubricName,
    RunName,
    Seconds,
    Target,
    Targets,
    Variable,
    distinct,
)
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, simulator_pb2
from policysweep.yaml_source import read_yaml, validate

REHEARSAL_PREFIX = "rehearsal-"
"""Models whose name begins so are served by the rehearsal server that a local run starts."""


class _Part(BaseModel):
    """Settings that are frozen and refuse fields that they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DatasetSpec(_Part):
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


class ScenarioFilter(_Part):
    """Which scenarios of the data set are played; all when nothing is set."""

    tasks: Names | None = Field(default=None, description="Ids of the tasks to play.")
    personas: Names | None = Field(default=None, description="Ids of the customer personas to play.")
    limit: Count | None = Field(
        default=None,
        description="Play at most this many scenarios, spread evenly over the tasks and personas.",
    )


class ModelSpec(_Part):
    """A served model and how it is sampled."""

    model: str | None = Field(
        default=None, min_length=1, description="Name under which the server serves the model."
    )
    model_url: ModelUrl | None = Field(
        default=None,
        description="Base URL of the OpenAI-compatible server; "
        "may be left out for a rehearsal model, whose server the local run starts.",
    )
    api_key_env: Variable | None = Field(
        default=None, description="Name of the environment variable that holds the server's API key."
    )
    temperature: Annotated[float, Field(ge=0, le=2, strict=True)] | None = Field(
        default=None, description="Sampling temperature; 0 is greedy."
    )
    top_p: Annotated[float, Field(gt=0, le=1, strict=True)] | None = Field(
        default=None, description="Nucleus mass; 1 is off."
    )
    max_tokens: Count | None = Field(default=None, description="Limit on the tokens of one answer.")
    model_timeout_seconds: Seconds | None = Field(
        default=None,
        description="Limit on one model call, in seconds; `limits.agent_call_seconds` may be shorter.",
    )
    context_tokens: Count | None = Field(
        default=None,
        description="Context of the model in tokens, for a server that does not report it as max_model_len.",
    )

    def check_served(self) -> None:
        """ValueError when nothing serves the model."""
        if self.model and not self.model_url and not self.model.startswith(REHEARSAL_PREFIX):
            raise ValueError(
                f"model_url is missing: no server is started for {self.model}, "
                f"only for models named {REHEARSAL_PREFIX}*"
            )

    def settings(self) -> dict[str, str | int | float]:
        """What the file sets, under the names that the service's configuration uses."""
        return self.model_dump(exclude={"name", "target"}, exclude_none=True)


class ToolCallingSpec(ModelSpec):
    """A served model that calls tools."""

    tool_mode: ToolMode | None = Field(
        default=None,
        description="How the model is given its tools: native, by the server's tool calling, or prompted, in "
        "the prompt, for models and servers without it.",
    )


class CustomerSpec(ToolCallingSpec):
    """The model that plays the customer, for the simulator that a local run starts."""

    model: str = Field(
        default="rehearsal-customer",
        min_length=1,
        description="Name under which the server serves the model.",
    )

    @model_validator(mode="after")
    def _served(self) -> CustomerSpec:
        self.check_served()
        return self


class ServedSpec(ModelSpec):
    """A service by `target`, or a `model` for which one is started."""

    kind: ClassVar[str]

    name: AgentName = Field(description="Name in records and tables, unique in the sweep.")
    target: Target | None = Field(
        default=None,
        description="gRPC target of a service that already runs, such as dns:///agent:50052.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> ServedSpec:
        if self.model is None and self.target is None:
            raise ValueError(f"{self.kind} {self.name} needs a model or a target")
        if self.target is not None and (surplus := sorted(self.settings())):
            raise ValueError(
                f"{self.kind} {self.name} has a target, so {', '.join(surplus)} cannot be set here: "
                "the service that runs there has its own"
            )
        self.check_served()
        return self


class AgentSpec(ServedSpec, ToolCallingSpec):
    """An agent under test: a `model`, for which an agent service is started, or a `target` that runs."""

    kind = "agent"


class JudgeSpec(ServedSpec):
    """A judge: a `model`, for which a judge service is started, or a `target` that runs."""

    kind = "judge"


class AgentPersonaSpec(_Part):
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


class LimitsSpec(_Part):
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


class SweepSpec(_Part):
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
    customer: CustomerSpec | None = Field(
        default=None,
        description="The model that plays the customer; the rehearsal customer if left out. "
        "Not allowed with `simulators`, which have their own.",
    )
    simulators: Targets | None = Field(
        default=None,
        description="gRPC targets of simulator services that already run; one is started if left out.",
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

    @model_validator(mode="after")
    def _one_customer(self) -> SweepSpec:
        if self.simulators is not None and self.customer is not None:
            raise ValueError("customer cannot be set together with simulators: each simulator has its own")
        return self

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
