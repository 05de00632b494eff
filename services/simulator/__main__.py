"""`python -m services.simulator`: serve SimulatorService."""

from __future__ import annotations

from policysweep.config import load_config
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, run_main, run_service
from policysweep.telemetry import configure_logging
from policysweep.v1 import simulator_pb2, simulator_pb2_grpc
from services.simulator.config import SimulatorConfig
from services.simulator.service import Simulator

_NAME = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name


async def _main() -> None:
    config = load_config(SimulatorConfig, "simulator")
    configure_logging(config.log_level)
    async with (
        OpenAIChatModel.of(config) as model,
        Channels(config.credentials()) as channels,
    ):
        servicer = Simulator(config, model, channels)
        service = Service(
            _NAME, lambda server: simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(servicer, server)
        )
        await run_service(config, "simulator", [service])


if __name__ == "__main__":
    run_main(_main())
