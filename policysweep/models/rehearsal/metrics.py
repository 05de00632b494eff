"""Prometheus metrics under vLLM's names and labels, so that dashboards and alerts can be rehearsed.

Names: vLLM's production metrics (V1 engine). Buckets are vLLM's too. Every series carries `model_name` and
`engine`; `vllm:request_success_total` also `finished_reason`.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_LABELS = ("model_name", "engine")
_FIRST_TOKEN_BUCKETS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_LATENCY_BUCKETS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
FINISHED_REASONS = ("stop", "length", "abort", "error")


class ModelMetrics:
    """The series of one served model."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        labels = (model, "0")
        self._prompt_tokens = metrics.prompt_tokens.labels(*labels)
        self._generation_tokens = metrics.generation_tokens.labels(*labels)
        self._queries = metrics.prefix_queries.labels(*labels)
        self._hits = metrics.prefix_hits.labels(*labels)
        self._first_token = metrics.first_token.labels(*labels)
        self._latency = metrics.latency.labels(*labels)
        self._success = {reason: metrics.success.labels(*labels, reason) for reason in FINISHED_REASONS}

    def prompted(self, prompt_tokens: int, cached_tokens: int) -> None:
        """A prompt was read."""
        self._prompt_tokens.inc(prompt_tokens)
        self._queries.inc(prompt_tokens)
        self._hits.inc(cached_tokens)

    def finished(self, reason: str, completion_tokens: int, first_token: float, latency: float) -> None:
        """An answer was written; times in seconds since the request arrived."""
        self._generation_tokens.inc(completion_tokens)
        self._first_token.observe(first_token)
        self._latency.observe(latency)
        # To the engine a tool call is an ordinary stop; only the API layer tells them apart.
        self._success[reason if reason in self._success else "stop"].inc()

    def aborted(self) -> None:
        """A client went away before its answer was complete."""
        self._success["abort"].inc()


class Metrics:
    """All series of a server, in a registry of its own: several servers fit into one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, help_text: str, labels: tuple[str, ...] = _LABELS) -> Counter:
            return Counter(name, help_text, labels, registry=registry)

        self._running = Gauge("vllm:num_requests_running", "Requests in work.", _LABELS, registry=registry)
        self._waiting = Gauge(
            "vllm:num_requests_waiting", "Requests in the queue.", _LABELS, registry=registry
        )
        self.prompt_tokens = counter("vllm:prompt_tokens", "Prompt tokens.")
        self.generation_tokens = counter("vllm:generation_tokens", "Tokens written.")
        self.prefix_queries = counter(
            "vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache."
        )
        self.prefix_hits = counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        self.success = counter("vllm:request_success", "Requests answered.", (*_LABELS, "finished_reason"))
        self.first_token = Histogram(
            "vllm:time_to_first_token_seconds", "Seconds to the first token.", _LABELS,
            buckets=_FIRST_TOKEN_BUCKETS, registry=registry,
        )  # fmt: skip
        self.latency = Histogram(
            "vllm:e2e_request_latency_seconds", "Seconds to the last token.", _LABELS,
            buckets=_LATENCY_BUCKETS, registry=registry,
        )  # fmt: skip

    def add_model(self, model: str, running: Callable[[], int], waiting: Callable[[], int]) -> ModelMetrics:
        """The series of `model`; the gauges are read from the functions when they are scraped."""
        self._running.labels(model, "0").set_function(running)
        self._waiting.labels(model, "0").set_function(waiting)
        return ModelMetrics(self, model)

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self._registry)
