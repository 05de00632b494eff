"""`python -m services.policybank`: serve PolicyBankService."""

from __future__ import annotations

from policysweep.config import load_config
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.process import calm_collector
from policysweep.rpc.server import run_main, run_service
from policysweep.telemetry import configure_logging
from services.policybank.assembly import servicer
from services.policybank.config import PolicyBankConfig
from services.policybank.service import policybank_service


async def _main() -> None:
    config = load_config(PolicyBankConfig, "policybank")
    configure_logging(config.log_level)
    async with (
        OpenAIChatModel.of(config) as model,
        servicer(config, model) as banks,
    ):
        calm_collector()  # again: opening a store imports it
        await run_service(config, "policybank", [policybank_service(banks)])


if __name__ == "__main__":
    run_main(_main())
