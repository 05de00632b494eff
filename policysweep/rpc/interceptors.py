"""What every call into a service of ours passes: a deadline check, the error mapping and the call metrics."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import structlog

from policysweep import errors, telemetry
from policysweep.rpc import status

_log = structlog.get_logger(__name__)
_OURS = "/policysweep."
_Context = grpc.aio.ServicerContext[Any, Any]


class DeadlineMissing(errors.InputError):
    """A call without a deadline."""

    reason = "DEADLINE_MISSING"


class Unimplemented(errors.PolicysweepError):
    """A method that this server does not implement."""

    code = grpc.StatusCode.UNIMPLEMENTED
    reason = "UNIMPLEMENTED"


class Gate(grpc.aio.ServerInterceptor):
    """Wraps each method of our services once; health and reflection pass as they are."""

    def __init__(self) -> None:
        self._wrapped: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The handler of the called method, wrapped."""
        method = handler_call_details.method
        if (known := self._wrapped.get(method)) is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None or not method.startswith(_OURS):
            return handler
        return self._wrapped.setdefault(method, _wrap(method, handler))


def _wrap(method: str, handler: Any) -> grpc.RpcMethodHandler[Any, Any]:
    # `handler` is Any because the published types know the synchronous form of its methods only.
    codecs = {
        "request_deserializer": handler.request_deserializer,
        "response_serializer": handler.response_serializer,
    }
    if handler.unary_unary is not None:
        return grpc.unary_unary_rpc_method_handler(_unary(method, handler.unary_unary), **codecs)
    if handler.stream_unary is not None:
        return grpc.stream_unary_rpc_method_handler(_unary(method, handler.stream_unary), **codecs)
    if handler.unary_stream is not None:
        return grpc.unary_stream_rpc_method_handler(_stream(method, handler.unary_stream), **codecs)
    return grpc.stream_stream_rpc_method_handler(_stream(method, handler.stream_stream), **codecs)


def _unary(method: str, call: Callable[[Any, _Context], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    series = _Series(method)

    async def gated(request: Any, context: _Context) -> Any:
        observed = _Observed(series)
        try:
            _require_deadline(method, context)
            response = await call(request, context)
        except Exception as error:  # noqa: BLE001 - the one place that classifies; always ends in abort
            await status.abort(context, observed.failed(error))
        else:
            observed.code = "OK"
            return response
        finally:
            observed.end()

    return gated


def _stream(
    method: str, call: Callable[[Any, _Context], AsyncIterator[Any]]
) -> Callable[..., AsyncIterator[Any]]:
    series = _Series(method)

    async def gated(request: Any, context: _Context) -> AsyncIterator[Any]:
        observed = _Observed(series)
        try:
            _require_deadline(method, context)
            async for response in call(request, context):
                yield response
            observed.code = "OK"
        except Exception as error:  # noqa: BLE001 - the one place that classifies; always ends in abort
            await status.abort(context, observed.failed(error))
        finally:
            observed.end()

    return gated


def _require_deadline(method: str, context: _Context) -> None:
    left: float | None = context.time_remaining()
    if left is None:
        raise DeadlineMissing(f"{method} needs a deadline: set a timeout on the call")


class _Series:
    """The series of one method, bound once: looking one up by its labels costs more than counting."""

    def __init__(self, method: str) -> None:
        # As Prometheus' gRPC dashboards have it: policysweep.v1.AgentService/Respond.
        self.method = method.lstrip("/")
        self.ok = telemetry.GRPC_CALLS.labels(self.method, "OK")
        telemetry.GRPC_CALLS.labels(self.method, "INTERNAL")  # begins at 0: its first increase is an alert
        self.seconds = telemetry.GRPC_SECONDS.labels(self.method)
        self.in_flight = telemetry.GRPC_IN_FLIGHT.labels(self.method)


class _Observed:
    """Times one call. Its `code` is the one that it ended with: CANCELLED unless something else is known."""

    def __init__(self, series: _Series) -> None:
        self._series = series
        self.code = "CANCELLED"
        self._started = time.perf_counter()
        series.in_flight.inc()

    def failed(self, error: Exception) -> errors.PolicysweepError:
        known = _classified(self._series.method, error)
        self.code = known.code.name
        return known

    def end(self) -> None:
        series = self._series
        calls = series.ok if self.code == "OK" else telemetry.GRPC_CALLS.labels(series.method, self.code)
        calls.inc()
        series.seconds.observe(time.perf_counter() - self._started)
        series.in_flight.dec()


def _classified(method: str, error: Exception) -> errors.PolicysweepError:
    match error:
        case grpc.aio.AbortError():
            raise error
        case errors.PolicysweepError():
            return error
        case NotImplementedError():
            return Unimplemented(f"{method} is not implemented by this server")
        case _:
            _log.error("unexpected error", method=method, exc_info=error)
            return errors.PolicysweepError(f"{method}: internal error, see the server's log")
