"""The stream file: what a person writes to describe a stream run. All defaults of a stream run stand here.

Settings of a model that the file leaves out are the service's own defaults, see `policysweep.config`; a
temperature of 0 among them, as in PolicyBank (arXiv 2604.15505). API keys are never in the file:
`api_key_env` names the environment variable that holds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt, field_validator, model_validator

from policysweep.config import ServiceConfig
from policysweep.errors import InputError
from policysweep.sweep.model_spec import JudgeSpec, ModelSpec, PlayedByCustomer, ServedSpec, ToolCallingSpec
from policysweep.sweep.spec_fields import (
    INT32_MAX,
    AgentName,
    BankStore,
    Count,
    Names,
    Part,
    RunName,
    Seconds,
    Target,
    Variable,
    distinct,
)
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import simulator_pb2, stream_pb2
from policysweep.yaml_source import read_yaml, validate

DomainName = Literal["airline", "retail"]
MethodName = Literal[
    "none", "synapse", "awm", "reasoning_bank", "policy_bank", "full_context", "human_oracle"
]
RegimeName = Literal["reward", "explanation"]
StaticMode = Literal["static_turn", "static_start"]
MemoryMode = Literal["none", "static_turn", "static_start", "retrieve", "full"]
Parameters = Mapping[str, StrictInt | float | str]
Seed = Annotated[StrictInt, Field(ge=0, le=INT32_MAX)]

_STATIC = ("synapse", "awm", "reasoning_bank")


class StreamAgentSpec(ToolCallingSpec):
    """An agent under test: a `model`, for which agent services are started, or `targets` that run.

    One service serves one way of using a memory, and the methods decide which ways are needed.
    """

    name: AgentName = Field(description="Name in records and tables, unique in the file.")
    targets: Mapping[MemoryMode, Target] | None = Field(
        default=None,
        description="gRPC targets of agent services that already run, by their memory mode (`--memory`).",
    )
    policy_in_prompt: StrictBool = Field(
        default=True,
        description="Whether an agent with a memory also has the written policy in its prompt; "
        "for the services that are started here.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> StreamAgentSpec:
        if self.model is None and self.targets is None:
            raise ValueError(f"agent {self.name} needs a model or targets")
        if self.targets is not None and (surplus := sorted({*self.settings(), *self._policy_withheld()})):
            raise ValueError(
                f"agent {self.name} has targets, so {', '.join(surplus)} cannot be set here: "
                "the services that run there have their own"
            )
        self.check_served()
        return self

    def _policy_withheld(self) -> tuple[str, ...]:
        return () if self.policy_in_prompt else ("policy_in_prompt",)

    def settings(self) -> dict[str, str | int | float]:
        """The model's settings, under the names that the service's configuration uses."""
        return self.model_dump(exclude={"name", "targets", "policy_in_prompt"}, exclude_none=True)


class StreamJudgeSpec(JudgeSpec):
    """The judge that grades: a `model`, for which a judge service is started, or a `target` that runs.

    The model decides assertions in plain words; everything else in a grade is computed.
    """

    name: AgentName = Field(default="judge", description="Name of the judge's log.")


class BankSpec(ServedSpec):
    """The bank service: a `model` as the curator, for which one is started, or a `target` that runs."""

    kind: ClassVar[str] = "bank"

    name: AgentName = Field(default="policybank", description="Name of the service's log.")
    store: BankStore | None = Field(
        default=None,
        description="Where banks are kept: a directory, or the URL of a Qdrant server. "
        "A folder of the run if left out, which needs a store of results that is a local directory.",
    )
    store_api_key_env: Variable | None = Field(
        default=None, description="Name of the environment variable that holds the Qdrant server's API key."
    )
    parameters: Parameters = Field(
        default={},
        description="Other settings of the service, such as `reasoning_bank_limit`: "
        "see `python -m services.policybank --help`.",
    )

    @field_validator("parameters")
    @classmethod
    def _own_parameters(cls, parameters: Parameters) -> Parameters:
        """What has a field of its own is set there; what makes the process is the command's to say."""
        if taken := sorted(parameters.keys() & (cls.model_fields.keys() | ServiceConfig.model_fields.keys())):
            raise ValueError(f"must not hold {', '.join(taken)}: a field of bank, or the command, says that")
        return parameters

    def settings(self) -> dict[str, str | int | float]:
        """What the file sets, under the names that the service's configuration uses."""
        own = self.model_dump(exclude={"name", "target", "parameters"}, exclude_none=True)
        return {**own, **self.parameters}


class OriginalsSpec(Part):
    """Which originals are played; all when nothing is set."""

    tasks: Names | None = Field(
        default=None, description="The originals to play, as DOMAIN-TASK: `airline-39`."
    )
    ordinary: Annotated[StrictInt, Field(ge=0, le=INT32_MAX)] | None = Field(
        default=None,
        description="Play the parents, and this many other originals of each domain, spread evenly; "
        "0 plays the families alone.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> OriginalsSpec:
        if self.tasks is not None and self.ordinary is not None:
            raise ValueError("give tasks or ordinary, not both: tasks already names all that are played")
        return self


class StreamLimitsSpec(Part):
    """Limits of one task."""

    max_steps: Count = Field(default=200, description="Messages and rounds of results (tau2-bench: 200).")
    max_errors: Count = Field(default=10, description="Refused calls and unusable messages (tau2-bench: 10).")
    max_tokens: Count = Field(
        default=2_000_000,
        description="Prompt and completion tokens of the conversation, all models together.",
    )
    agent_call_seconds: Seconds = Field(
        default=120.0, description="Deadline of one call to the agent, in seconds."
    )
    episode_seconds: Seconds = Field(
        default=1800.0, description="Deadline of the whole conversation, in seconds."
    )
    judge_seconds: Seconds = Field(default=300.0, description="Deadline of a grade, in seconds.")
    curator_seconds: Seconds = Field(
        default=600.0, description="Deadline of a feedback, and of making a bank, in seconds."
    )

    @model_validator(mode="after")
    def _deadlines_nest(self) -> StreamLimitsSpec:
        if self.agent_call_seconds > self.episode_seconds:
            raise ValueError(
                f"agent_call_seconds ({self.agent_call_seconds:g}) must not be longer than "
                f"episode_seconds ({self.episode_seconds:g})"
            )
        return self

    def message(self) -> simulator_pb2.Tau2Limits:
        """The limits that travel to the simulator."""
        return simulator_pb2.Tau2Limits(
            max_steps=self.max_steps,
            max_errors=self.max_errors,
            max_tokens=self.max_tokens,
            agent_call_seconds=self.agent_call_seconds,
        )


class StreamSpec(PlayedByCustomer):
    """A stream run: streams of tasks for every domain, method, regime, agent, seed and trial."""

    name: RunName = Field(description="Name of the run: its folder in the store.")
    domains: Annotated[tuple[DomainName, ...], Field(min_length=1)] = Field(
        default=("airline", "retail"), description="The domains that are played."
    )
    methods: Annotated[tuple[MethodName, ...], Field(min_length=1)] = Field(
        description="The memory methods that are compared."
    )
    agents: Annotated[tuple[StreamAgentSpec, ...], Field(min_length=1)] = Field(
        description="The agents under test."
    )
    static_memory: StaticMode = Field(
        default="static_turn",
        description="When synapse, awm and reasoning_bank recall: after every message of the customer, or at "
        "the start.",
    )
    bank: BankSpec = Field(
        default=BankSpec(model="rehearsal-judge"),
        description="The bank service; a rehearsal curator if left out.",
    )
    judge: StreamJudgeSpec = Field(
        default=StreamJudgeSpec(model="rehearsal-judge"),
        description="The judge that grades; a rehearsal judge if left out.",
    )
    feedback: Annotated[tuple[RegimeName, ...], Field(min_length=1)] = Field(
        default=("explanation",),
        description="How much the feedback tells; each method that learns is played under each. "
        "human_oracle is told the clarifications, whatever stands here.",
    )
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(
        default=(0, 1, 2, 3, 4), description="Seeds of the order of the tasks: how many, or which."
    )
    trials: Count = Field(default=4, description="Streams for each seed, all in the same order.")
    originals: OriginalsSpec = Field(default=OriginalsSpec(), description="Which originals are played.")
    sisters: StrictBool = Field(
        default=True, description="Whether sisters are played, right after their parents."
    )
    controls: Literal["none", "after_family", "end"] = Field(
        default="none",
        description="Where controls stand: nowhere, after the first family of their gap, last.",
    )
    limits: StreamLimitsSpec = Field(default=StreamLimitsSpec(), description="Limits of one task.")
    concurrency: Count = Field(default=16, description="Streams in flight.")
    max_attempts: Count = Field(
        default=3,
        description="Attempts per task and invocation; only faults of the infrastructure are tried again.",
    )
    outage_seconds: Seconds = Field(
        default=300.0,
        description="How long a service or its model server may answer nobody before a stream is left for "
        "the next run, in seconds.",
    )

    @field_validator("seeds", mode="before")
    @classmethod
    def _number_of_seeds(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return value
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
            raise ValueError("must be how many seeds, from 1 to 10000, or a list of them")
        return tuple(range(value))

    @field_validator("domains", "methods", "feedback", "seeds")
    @classmethod
    def _distinct(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        distinct(tuple(map(str, values)))
        return values

    @field_validator("agents")
    @classmethod
    def _distinct_names(cls, agents: tuple[StreamAgentSpec, ...]) -> tuple[StreamAgentSpec, ...]:
        distinct(tuple(agent.name for agent in agents))
        return agents

    @model_validator(mode="after")
    def _targets_for_all_modes(self) -> StreamSpec:
        for agent in self.agents:
            for mode in self.memory_modes():
                if agent.targets is not None and mode not in agent.targets:
                    used = ", ".join(name for name in self.methods if self.memory_mode(name) == mode)
                    raise ValueError(
                        f"agent {agent.name} has no target for memory {mode}, which {used} needs"
                    )
        return self

    def memory_mode(self, method: MethodName) -> MemoryMode:
        """How the agent uses the bank of a method."""
        if method == "none":
            return "none"
        if method in _STATIC:
            return self.static_memory
        return "retrieve" if method == "policy_bank" else "full"

    def memory_modes(self) -> tuple[MemoryMode, ...]:
        """The modes that the methods need, in the order of the methods."""
        return tuple(dict.fromkeys(self.memory_mode(method) for method in self.methods))

    @property
    def needs_bank(self) -> bool:
        """Whether any method has a bank."""
        return self.memory_modes() != ("none",)

    def method_messages(self) -> Iterator[stream_pb2.StreamMethod]:
        """The methods as the manifest has them."""
        for method in self.methods:
            yield stream_pb2.StreamMethod(
                method=pb.MemoryMethod.Value(f"MEMORY_METHOD_{method.upper()}"),
                memory_mode=self.memory_mode(method),
                regimes=self._regimes(method),
            )

    def _regimes(self, method: MethodName) -> list[pb.FeedbackRegime.ValueType]:
        if method == "none":
            return []
        names = ("oracle",) if method == "human_oracle" else self.feedback
        return [pb.FeedbackRegime.Value(f"FEEDBACK_REGIME_{name.upper()}") for name in names]

    def controls_message(self) -> stream_pb2.ControlPlacement.ValueType:
        """Where controls stand, as the contract names it."""
        return stream_pb2.ControlPlacement.Value(f"CONTROL_PLACEMENT_{self.controls.upper()}")

    def check_environment(self, environ: Mapping[str, str]) -> None:
        """InputError that names each environment variable that the file names and that is not set."""
        users: list[tuple[str, ModelSpec]] = [(f"agent {agent.name}", agent) for agent in self.agents]
        users += [("judge", self.judge), ("bank", self.bank)]
        users += [("customer", self.customer)] if self.customer else []
        named = [(f"{user}: api_key_env", spec.api_key_env) for user, spec in users]
        named.append(("bank: store_api_key_env", self.bank.store_api_key_env))
        problems = [
            f"{field} names {variable}, which is not set in the environment"
            for field, variable in named
            if variable and not environ.get(variable)
        ]
        if problems:
            raise InputError("\n".join(problems))


def load_spec(path: Path) -> StreamSpec:
    """Read a stream file. InputError with one line `FILE:LINE: field: what is wrong` per problem."""
    return validate(read_yaml(path), StreamSpec)
