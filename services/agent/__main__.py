"""`python -m services.agent`: serve AgentService with the baseline variant."""

from __future__ import annotations

from policysweep.config import load_config
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.rpc.server import run_main, run_service
from policysweep.telemetry import configure_logging
from policysweep.v1 import agent_pb2
from services.agent.config import AgentConfig
from services.agent.service import agent_service
from services.agent.variants.baseline import BaselineAgent


async def _main() -> None:
    config = load_config(AgentConfig, "agent")
    configure_logging(config.log_level)
    sampling = agent_pb2.Sampling(
        temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
    )
    model = OpenAIChatModel(base_url=config.model_url, model=config.model, api_key=config.api_key())
    async with model:
        agent = BaselineAgent(model, sampling)
        await run_service(config, "agent", [agent_service(agent, config.model_timeout_seconds)])


if __name__ == "__main__":
    run_main(_main())
