"""`python -m services.judge`: serve JudgeService. Every method of it answers UNIMPLEMENTED."""

from __future__ import annotations

from policysweep.config import ServiceConfig, load_config
from policysweep.rpc.server import Service, run_main, run_service
from policysweep.telemetry import configure_logging
from policysweep.v1 import judge_pb2, judge_pb2_grpc

_NAME = judge_pb2.DESCRIPTOR.services_by_name["JudgeService"].full_name


async def _main() -> None:
    config = load_config(ServiceConfig, "judge")
    configure_logging(config.log_level)
    # The generated base class answers every method with UNIMPLEMENTED.
    servicer = judge_pb2_grpc.JudgeServiceServicer()  # type: ignore[abstract]  # see above
    service = Service(
        _NAME, lambda server: judge_pb2_grpc.add_JudgeServiceServicer_to_server(servicer, server)
    )
    await run_service(config, "judge", [service])


if __name__ == "__main__":
    run_main(_main())
