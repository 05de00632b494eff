"""Errors on the wire: the error tree to `google.rpc.Status` with one `ErrorInfo`, and back.

The tree itself, with what each class counts as, is `policysweep.errors`. Nothing else in the project
translates between exceptions and status codes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.rpc import error_details_pb2, status_pb2

from policysweep import errors

_DETAILS_KEY = "grpc-status-details-bin"
_RETRY_AFTER = "retry_after"
_TOO_LARGE = re.compile(r"(\w+: \w+) message larger than max \((\d+) vs\. (\d+)\)")
_OUR_SIDE = ("CLIENT: Sent", "SERVER: Received")
"""What the core says when the request is too large; of answers it says the reverse."""
_HANDSHAKE = re.compile(r"OPENSSL_internal:(\w+): (.*?)(?:: OK)?$")


def status_of(error: errors.PolicysweepError) -> status_pb2.Status:
    """The rich status of an error: its code, its message, and one ErrorInfo with its reason."""
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=errors.DOMAIN)
    if error.retry_after is not None:
        info.metadata[_RETRY_AFTER] = f"{error.retry_after:g}"
    status = status_pb2.Status(code=error.code.value[0], message=str(error))
    status.details.add().Pack(info)
    return status


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: errors.PolicysweepError) -> NoReturn:
    """End a call with the error's rich status."""
    details = status_of(error).SerializeToString()
    await context.abort(error.code, str(error), trailing_metadata=((_DETAILS_KEY, details),))


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a status without an ErrorInfo of ours means at one boundary."""

    peer: str
    unavailable: type[errors.PolicysweepError]
    timeout: type[errors.PolicysweepError]
    unimplemented: type[errors.PolicysweepError]
    answer_too_large: type[errors.PolicysweepError] = errors.MessageTooLarge


AGENT = Boundary(
    "agent",
    errors.AgentUnavailable,
    errors.AgentTimeout,
    errors.AgentUnimplemented,
    answer_too_large=errors.AgentContractError,
)
SERVICE = Boundary("service", errors.ServiceUnavailable, errors.ServiceTimeout, errors.InputError)
POLICY_BANK = Boundary(
    "policy bank", errors.ServiceUnavailable, errors.ServiceTimeout, errors.ServiceContractError
)


def error_info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo | None:
    """The ErrorInfo of our domain that a failed call carries, if any."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            for packed in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if packed.Unpack(info) and info.domain == errors.DOMAIN:
                    return info
    return None


def error_from(error: grpc.aio.AioRpcError, boundary: Boundary, target: str) -> errors.PolicysweepError:
    """The exception that a failed call stands for.

    An ErrorInfo of ours is turned back into the class that was raised at the other end, but a StoreError into
    what the boundary has for a peer that is not available. Without one, the code alone decides, by boundary.
    """
    message = error.details() or error.code().name
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return boundary.unimplemented(f"{boundary.peer} at {target} does not serve this method: {message}")
    info = error_info(error)
    if info is not None:
        retry_after = info.metadata.get(_RETRY_AFTER)
        kind = errors.by_reason(info.reason)
        if issubclass(kind, errors.StoreError):  # the peer's own store: no service has the one of our results
            kind = boundary.unavailable
        return kind(message, retry_after=None if retry_after is None else float(retry_after))
    where = f"{boundary.peer} at {target}"
    match error.code():
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return boundary.unavailable(f"{where} cannot be reached: {_cause(message)}")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return boundary.timeout(f"{where} did not answer in time")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if found := _TOO_LARGE.search(message):
            kind = errors.MessageTooLarge if found[1] in _OUR_SIDE else boundary.answer_too_large
            what = "request" if found[1] in _OUR_SIDE else "answer"
            return kind(f"{where}: the {what} has {found[2]} bytes, a gRPC message at most {found[3]}")
        case code:
            return errors.InfrastructureError(f"{where} answered {code.name}: {message}")


def _cause(message: str) -> str:
    """What a reader can act on, out of the core's chain of causes."""
    if "Hostname Verification Check failed" in message:
        return "its certificate is not one for this name"
    if found := _HANDSHAKE.search(message):
        return "it does not speak TLS" if found[1] == "WRONG_VERSION_NUMBER" else f"{found[1]}: {found[2]}"
    if "Debug Text: max_age" in message:
        return "it ended the connection because of its age, and again when the call was sent anew"
    last = message.rpartition(": ")[2]
    if last == "Socket closed":
        return "it closed the connection; it has ended, wants TLS, or refuses the certificate it was shown"
    return last
