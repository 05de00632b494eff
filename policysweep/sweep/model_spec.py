"""Who plays a role in a sweep: a model that is served, or a service that runs.

Settings of a model that the file leaves out are the service's own defaults, see `policysweep.config`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, model_validator

from policysweep.models.prompted_tools import ToolMode
from policysweep.sweep.spec_fields import AgentName, Count, ModelUrl, Part, Seconds, Target, Targets, Variable

REHEARSAL_PREFIX = "rehearsal-"
"""Models whose name begins so are served by the rehearsal server that a local run starts."""


class ModelSpec(Part):
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


class AgentBankSpec(Part):
    """The policy bank that an agent reads, at one revision: what a bank learns later changes no result."""

    id: str = Field(min_length=1, description="The bank, see `policysweep bank list`.")
    revision: Count = Field(description="The revision that every unit reads.")
    target: Target = Field(
        description="gRPC target of the policybank service that has it, such as dns:///policybank:50054."
    )


class AgentSpec(ServedSpec, ToolCallingSpec):
    """An agent under test: a `model`, for which an agent service is started, or a `target` that runs."""

    kind = "agent"

    memory: Literal["static_start", "static_turn", "retrieve", "full"] | None = Field(
        default=None,
        description="How it reads its bank: recalled at the start, or after every message of the customer; "
        "read by the model with retrieve_policy; or all of it in the prompt. No memory if left out.",
    )
    policy_in_prompt: StrictBool = Field(
        default=True, description="Whether an agent with a memory also has the written policy in its prompt."
    )
    bank: AgentBankSpec | None = Field(default=None, description="The policy bank that it reads.")

    @model_validator(mode="after")
    def _memory_has_a_bank(self) -> AgentSpec:
        if self.target is not None:
            return self  # Whether that service has a memory is asked of it.
        if self.memory is None and (self.bank is not None or not self.policy_in_prompt):
            raise ValueError(
                f"agent {self.name} has no memory, so bank and policy_in_prompt cannot be set: set memory to "
                "static_start, static_turn, retrieve or full"
            )
        if self.memory is not None and self.bank is None:
            raise ValueError(
                f"agent {self.name} has memory {self.memory} and no bank: "
                "name one as bank: {id: BANK, revision: N, target: HOST:PORT}"
            )
        return self

    def settings(self) -> dict[str, str | int | float]:
        """See ModelSpec; a setting of False is a flag that begins with --no-."""
        found = self.model_dump(exclude={"name", "target", "bank", "policy_in_prompt"}, exclude_none=True)
        if not self.policy_in_prompt:
            found["policy_in_prompt"] = False
        if self.bank is not None and self.target is None:
            found["bank_target"] = self.bank.target
        return found


class JudgeSpec(ServedSpec):
    """A judge: a `model`, for which a judge service is started, or a `target` that runs."""

    kind = "judge"


class PlayedByCustomer(Part):
    """Who plays the customer of a run: a model, for which a simulator is started, or simulators that run."""

    customer: CustomerSpec | None = Field(
        default=None,
        description="The model that plays the customer; the rehearsal customer if left out. "
        "Not allowed with `simulators`, which have their own.",
    )
    simulators: Targets | None = Field(
        default=None,
        description="gRPC targets of simulator services that already run; one is started if left out.",
    )

    @model_validator(mode="after")
    def _one_customer(self) -> PlayedByCustomer:
        if self.simulators is not None and self.customer is not None:
            raise ValueError("customer cannot be set together with simulators: each simulator has its own")
        return self
