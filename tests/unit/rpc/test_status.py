"""What a failed call is told as: a reader must see which side to look at."""

from __future__ import annotations

import grpc
import pytest

from policysweep.errors import (
    AgentUnavailable,
    PolicysweepError,
    ServiceUnavailable,
    StoreError,
    StoreUnavailable,
)
from policysweep.rpc import status

AGED = (
    "Stream removed (Transport closed (GOAWAY received; Error code: 0; Debug Text: max_age))",
    "it ended the connection because of its age, and again when the call was sent anew",
)
REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: Failed to connect to remote "
    "host: Connection refused",
    "Connection refused",
)


@pytest.mark.parametrize(("details", "cause"), [AGED, REFUSED])
def test_what_cannot_be_reached_says_why(details: str, cause: str) -> None:
    call = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details
    )
    error = status.error_from(call, status.SERVICE, "simulator:50051")
    assert isinstance(error, ServiceUnavailable)
    assert str(error) == f"service at simulator:50051 cannot be reached: {cause}"


@pytest.mark.parametrize("raised", [StoreError, StoreUnavailable])
@pytest.mark.parametrize(
    ("boundary", "expected"),
    [
        (status.POLICY_BANK, ServiceUnavailable),
        (status.SERVICE, ServiceUnavailable),
        (status.AGENT, AgentUnavailable),
    ],
)
def test_the_store_of_a_service_is_not_that_of_the_results(
    raised: type[PolicysweepError], boundary: status.Boundary, expected: type[PolicysweepError]
) -> None:
    """A StoreError ends a run, since no result can be kept; a policy bank whose Qdrant is away does not."""
    rich = status.status_of(raised("cannot read a bank", retry_after=2)).SerializeToString()
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", rich))
    call = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing, "cannot read a bank"
    )
    error = status.error_from(call, boundary, "h:1")
    assert (type(error), str(error), error.retry_after) == (expected, "cannot read a bank", 2)
