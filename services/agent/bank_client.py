"""The policy bank over gRPC, as an agent reads it. An agent never writes."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import policysweep.errors  # noqa: F401 - its classes are then found by their reasons
from policysweep import errors
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc

_NAME = pb.DESCRIPTOR.services_by_name["PolicyBankService"].full_name

Answer = TypeVar("Answer")


class BankReader(Protocol):
    """A policy bank to read, each method within `seconds`.

    All raise InfrastructureError, and BankNotFound for an unknown bank or revision.
    """

    async def recall(
        self, bank: pb.BankRef, query: str, limit: int, seconds: float
    ) -> Sequence[pb.RecalledItem]:
        """The entries nearest to a query; 0 for the method's own limit."""
        ...

    async def everything(self, bank: pb.BankRef, seconds: float) -> Sequence[pb.RecalledItem]:
        """All entries."""
        ...

    async def headers(self, bank: pb.BankRef, seconds: float) -> Sequence[pb.Header]:
        """The headers of all entries."""
        ...

    async def specs(self, bank: pb.BankRef, ids: Sequence[str], seconds: float) -> pb.BatchGetSpecsResponse:
        """Entries in full."""
        ...

    async def check(self, seconds: float) -> None:
        """Raises ServiceUnavailable unless the service serves."""
        ...


class GrpcBank:
    """The bank service at `target`. Calls are not retried here: the driver owns the unit's retries."""

    def __init__(self, channels: Channels, target: str) -> None:
        self._channels = channels
        self._target = target

    @property
    def _stub(self) -> policybank_pb2_grpc.PolicyBankServiceAsyncStub:
        # Anew for each call: the channel is another one once this service's certificate was renewed.
        return policybank_pb2_grpc.PolicyBankServiceStub(self._channels.get(self._target))

    async def recall(
        self, bank: pb.BankRef, query: str, limit: int, seconds: float
    ) -> Sequence[pb.RecalledItem]:
        """See BankReader."""
        request = pb.RecallRequest(bank=bank, query=query, limit=limit)
        return (await self._ask(self._stub.Recall(request, timeout=seconds))).items

    async def everything(self, bank: pb.BankRef, seconds: float) -> Sequence[pb.RecalledItem]:
        """See BankReader."""
        request = pb.RecallRequest(bank=bank, all=True)
        return (await self._ask(self._stub.Recall(request, timeout=seconds))).items

    async def headers(self, bank: pb.BankRef, seconds: float) -> Sequence[pb.Header]:
        """See BankReader."""
        request = pb.ListHeadersRequest(bank=bank)
        return (await self._ask(self._stub.ListHeaders(request, timeout=seconds))).headers

    async def specs(self, bank: pb.BankRef, ids: Sequence[str], seconds: float) -> pb.BatchGetSpecsResponse:
        """See BankReader."""
        request = pb.BatchGetSpecsRequest(bank=bank, capability_ids=ids)
        return await self._ask(self._stub.BatchGetSpecs(request, timeout=seconds))

    async def check(self, seconds: float) -> None:
        """See BankReader."""
        # Published types know the synchronous form of its stub only.
        health: Any = health_pb2_grpc.HealthStub(self._channels.get(self._target))
        answer = await self._ask(health.Check(health_pb2.HealthCheckRequest(service=_NAME), timeout=seconds))
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise errors.ServiceUnavailable(f"policy bank at {self._target} is not serving")

    async def _ask(self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.POLICY_BANK, self._target) from error
