"""`python -m services.policybank`: serve PolicyBankService. Every method of it answers UNIMPLEMENTED."""

from __future__ import annotations

from policysweep.config import ServiceConfig, load_config
from policysweep.rpc.server import Service, run_main, run_service
from policysweep.telemetry import configure_logging
from policysweep.v1 import policybank_pb2, policybank_pb2_grpc

_NAME = policybank_pb2.DESCRIPTOR.services_by_name["PolicyBankService"].full_name


async def _main() -> None:
    config = load_config(ServiceConfig, "policybank")
    configure_logging(config.log_level)
    # The generated base class answers every method with UNIMPLEMENTED.
    servicer = policybank_pb2_grpc.PolicyBankServiceServicer()  # type: ignore[abstract]  # see above
    service = Service(
        _NAME, lambda server: policybank_pb2_grpc.add_PolicyBankServiceServicer_to_server(servicer, server)
    )
    await run_service(config, "policybank", [service])


if __name__ == "__main__":
    run_main(_main())
