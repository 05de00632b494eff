"""What the agent service can be told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policysweep.config import ModelEndpoint, ServiceConfig
from policysweep.errors import InputError
from policysweep.models.prompted_tools import ToolMode

MemoryMode = Literal["none", "static_start", "static_turn", "retrieve", "full"]


class AgentConfig(ServiceConfig, ModelEndpoint):
    """Serves an agent: a model that calls tools, behind an OpenAI-compatible server.

    Without a memory it is the baseline.
    """

    tool_mode: ToolMode = Field(
        "native",
        description="How the model is given its tools: by the server's tool calling, or in the prompt, for "
        "models and servers without it.",
    )

    memory: MemoryMode = Field(
        "none",
        description="How the policy bank of a conversation is used: not at all; recalled at the start, or "
        "after every message of the customer; read by the model with retrieve_policy; or all of it in the "
        "prompt.",
    )
    bank_target: str = Field(
        "", description="gRPC target of the policybank service, for example dns:///policybank:50054."
    )
    policy_in_prompt: bool = Field(
        True, description="Whether the written policy is in the prompt, or what the bank holds alone."
    )
    recall_limit: int = Field(
        0, ge=0, description="Entries that a static recall asks for; 0 for what the bank's method gives."
    )
    retrieval_rounds: int = Field(
        6, ge=2, le=50, description="Model calls of one answer that may end in retrieve_policy."
    )

    def check(self) -> None:
        """Raises InputError for settings that do not go together."""
        if self.memory == "none":
            if self.bank_target or not self.policy_in_prompt:
                raise InputError(
                    "bank_target, and policy_in_prompt when off, need a memory: set --memory to "
                    "static_start, static_turn, retrieve or full"
                )
        elif not self.bank_target:
            raise InputError(
                f"memory {self.memory} needs --bank-target, the address of the policybank service"
            )
