"""Logs and metrics. Every metric of the project is declared here, by Prometheus convention.

Logs are JSON lines on stderr (structlog). Prompts, replies and credentials are never logged.
"""

from __future__ import annotations

import logging
import sys

import structlog
from prometheus_client import Counter, Gauge, Histogram, start_http_server

from policysweep.errors import InputError

_LATENCY_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

GRPC_CALLS = Counter("policysweep_grpc_server_calls", "Calls served, by method and code.", ["method", "code"])
GRPC_SECONDS = Histogram(
    "policysweep_grpc_server_call_seconds",
    "Time that a call took on the server.",
    ["method"],
    buckets=_LATENCY_BUCKETS,
)
MODEL_CALLS = Counter(
    "policysweep_model_calls",
    "Model calls, by role and outcome (ok or a reason).",
    ["role", "outcome"],
)
MODEL_SECONDS = Histogram(
    "policysweep_model_call_seconds", "Time that a model call took.", ["role"], buckets=_LATENCY_BUCKETS
)
MODEL_TOKENS = Counter(
    "policysweep_model_tokens", "Tokens, by role and kind (prompt, cached, completion).", ["role", "kind"]
)
EPISODES = Counter(
    "policysweep_episodes", "Episodes ended in this simulator, by end reason and fault.", ["reason", "fault"]
)
EPISODES_RUNNING = Gauge("policysweep_episodes_running", "Episodes in progress in this simulator.")
UNITS = Counter(
    "policysweep_units",
    "Units by agent and state: recorded, duplicate, retried, failed.",
    ["agent", "state"],
)
UNITS_PLANNED = Gauge("policysweep_units_planned", "Units of this shard, by agent.", ["agent"])
UNITS_RUNNING = Gauge("policysweep_units_running", "Units in flight, by agent.", ["agent"])


def configure_logging(level: str = "info") -> None:
    """JSON lines on stderr from `level` on (debug, info, warning, error)."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise InputError(f"unknown log level {level!r}: use debug, info, warning or error")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def serve_metrics(listen: str) -> None:
    """Serve /metrics on `listen` ("host:port"); "" serves nothing."""
    if not listen:
        return
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise InputError(f"metrics address {listen!r} is not HOST:PORT")
    try:
        start_http_server(int(port), addr=host)
    except OSError as error:
        raise InputError(f"cannot serve metrics on {listen}: {error.strerror}") from error
