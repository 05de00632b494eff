"""Logs and metrics of a process.

Every metric that is counted where it happens is declared here, by Prometheus convention; what a driver knows
of its units is read from the driver itself, see sweep/metrics.py. docs/metrics.md is the table of both.

Labels are bounded: names of agents, models, methods, and values of enums. No id is ever a label. Where the
values are known, a series begins at 0 with the process, so that its first event is an increase.

Logs are JSON lines on stderr (structlog). Prompts, replies and credentials are never logged.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, start_http_server

from policysweep import __version__
from policysweep.errors import InputError

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, of no use here

_LATENCY_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_EPISODE_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0)

BUILD_INFO = Gauge(
    "policysweep_build_info", "1; which service this is, and its version.", ["service", "version"]
)

GRPC_CALLS = Counter(
    "policysweep_grpc_server_calls", "Calls served, by gRPC status code.", ["method", "code"]
)
GRPC_SECONDS = Histogram(
    "policysweep_grpc_server_call_seconds",
    "Time that a call took on the server.",
    ["method"],
    buckets=_LATENCY_BUCKETS,
)
GRPC_IN_FLIGHT = Gauge("policysweep_grpc_server_calls_in_flight", "Calls in work.", ["method"])

MODEL_CALLS = Counter(
    "policysweep_model_calls",
    "Model calls, by outcome: ok, or the reason of the error.",
    ["role", "model", "outcome"],
)
MODEL_SECONDS = Histogram(
    "policysweep_model_call_seconds",
    "Time that a model call took, failed ones included.",
    ["role", "model"],
    buckets=_LATENCY_BUCKETS,
)
MODEL_TOKENS = Counter(
    "policysweep_model_tokens",
    "Tokens, by kind (prompt, cached, completion; cached ones are prompt tokens too) and turn: first for "
    "calls with fewer than two earlier answers in the prompt, later for the rest. A server that does not "
    "report cached tokens has no series of them.",
    ["role", "model", "kind", "turn"],
)

EPISODES = Counter(
    "policysweep_episodes", "Conversations that ended, by end reason and who failed.", ["reason", "fault"]
)
EPISODES_RUNNING = Gauge("policysweep_episodes_running", "Conversations in progress.")
EPISODE_SECONDS = Histogram(
    "policysweep_episode_seconds", "Time that a conversation took.", buckets=_EPISODE_BUCKETS
)

JUDGE_ANSWERS = Counter(
    "policysweep_judge_answers",
    "Answers of the judge's model, by panel (or goals, assertions) and result: usable, or unusable when "
    "anything that was asked for could not be read.",
    ["panel", "result"],
)
JUDGE_SCORES = Counter(
    "policysweep_judge_scores",
    "Scores, by panel and result: given, or the reason why it is absent.",
    ["panel", "result"],
)

BANK_REVISIONS = Counter("policysweep_bank_revisions", "Revisions written to banks, by kind.", ["kind"])
BANK_STORE_UP = Gauge(
    "policysweep_bank_store_up",
    "1 while the bank's store answers, 0 while it does not; shared (a Qdrant server) or own.",
    ["store"],
)
BANK_STORE_CALLS = Counter(
    "policysweep_bank_store_calls",
    "Calls of the bank's store, by outcome: ok or error.",
    ["operation", "outcome"],
)
BANK_STORE_SECONDS = Histogram(
    "policysweep_bank_store_call_seconds",
    "Time that a call of the bank's store took.",
    ["operation"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0),
)

TLS_EXPIRY = Gauge(
    "policysweep_tls_certificate_expiry_timestamp_seconds",
    "When the certificate that this process shows ends, in Unix time; infinite without TLS.",
)
TLS_EXPIRY.set(float("inf"))


def enum_label(enum: Any, number: int) -> str:
    """A value of a protobuf enum as a label: lower case, without the enum's name; "none" for unspecified."""
    prefix = enum.Name(0).removesuffix("UNSPECIFIED")
    name: str = enum.Name(number).removeprefix(prefix).lower()
    return "none" if name == "unspecified" else name


def calls_in_flight() -> int:
    """Calls of this process's services that are in work, over all methods."""
    return sum(int(sample.value) for family in GRPC_IN_FLIGHT.collect() for sample in family.samples)


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


def serve_metrics(listen: str, service: str) -> None:
    """Serve /metrics of this process, a `service`, on `listen` ("host:port"); "" serves nothing."""
    BUILD_INFO.labels(service, __version__).set(1)
    if not listen:
        return
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise InputError(f"metrics address {listen!r} is not HOST:PORT")
    try:
        start_http_server(int(port), addr=host)
    except OSError as error:
        raise InputError(f"cannot serve metrics on {listen}: {error.strerror}") from error
