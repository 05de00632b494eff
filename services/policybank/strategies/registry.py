"""The memory methods by name, with the parameters of the service's configuration."""

from __future__ import annotations

from collections.abc import Mapping

from policysweep.v1 import policybank_pb2 as pb
from services.policybank.config import PolicyBankConfig
from services.policybank.strategies.baselines import AgentWorkflowMemory, NoMemory, ReasoningBank, Synapse
from services.policybank.strategies.policy import FullContext, HumanOracle, PolicyBank
from services.policybank.strategies.strategy import MemoryStrategy

PARAMETERS = (
    "synapse_limit",
    "synapse_characters",
    "awm_limit",
    "reasoning_bank_limit",
    "reasoning_bank_items",
    "policy_bank_limit",
)
"""The settings that change what methods learn and recall."""


def strategies(config: PolicyBankConfig) -> Mapping[int, MemoryStrategy]:
    """The methods by their number in the contract."""
    return {
        pb.MEMORY_METHOD_NONE: NoMemory(),
        pb.MEMORY_METHOD_SYNAPSE: Synapse(config.synapse_limit, config.synapse_characters),
        pb.MEMORY_METHOD_AWM: AgentWorkflowMemory(config.awm_limit),
        pb.MEMORY_METHOD_REASONING_BANK: ReasoningBank(
            config.reasoning_bank_limit, config.reasoning_bank_items
        ),
        pb.MEMORY_METHOD_POLICY_BANK: PolicyBank(config.policy_bank_limit),
        pb.MEMORY_METHOD_FULL_CONTEXT: FullContext(),
        pb.MEMORY_METHOD_HUMAN_ORACLE: HumanOracle(),
    }
