"""`python -m services.agent`: serve AgentService, with the baseline or with a memory."""

from __future__ import annotations

from functools import partial

from policysweep.config import load_config
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.rpc.client import Channels
from policysweep.rpc.server import run_main, run_service
from policysweep.telemetry import configure_logging
from policysweep.v1 import agent_pb2
from services.agent.agent import Agent
from services.agent.bank_client import GrpcBank
from services.agent.config import AgentConfig
from services.agent.served import ServedModel
from services.agent.service import agent_service
from services.agent.variants.baseline import BaselineAgent
from services.agent.variants.policybank import PolicyBankAgent

_BANK_SECONDS = 5.0
"""How long the policy bank may take to say that it serves, before this service is not ready."""


async def _main() -> None:
    config = load_config(AgentConfig, "agent")
    config.check()
    configure_logging(config.log_level)
    model = OpenAIChatModel.of(config)
    async with model, Channels(config.credentials()) as channels:
        bank = None if config.memory == "none" else GrpcBank(channels, config.bank_target)
        needs = None if bank is None else partial(bank.check, _BANK_SECONDS)
        service = agent_service(_agent(config, model, bank), config.model_timeout_seconds, needs)
        await run_service(config, "agent", [service])


def _agent(config: AgentConfig, model: ServedModel, bank: GrpcBank | None) -> Agent:
    sampling = agent_pb2.Sampling(
        temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
    )
    if bank is None:
        return BaselineAgent(model, sampling, config.tool_mode)
    return PolicyBankAgent(model, sampling, bank, config)


if __name__ == "__main__":
    run_main(_main())
