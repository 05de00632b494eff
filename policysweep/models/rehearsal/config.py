"""The settings of a rehearsal server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from policysweep.errors import InputError
from policysweep.models.rehearsal.faults import check_rates


@dataclass(frozen=True, slots=True)
class RehearsalConfig:
    """What a rehearsal server can be told. Raises InputError for values that make no sense."""

    listen: str = "127.0.0.1:0"
    """HOST:PORT; port 0 takes a free one."""
    first_token: float = 0.0
    """Seconds to the first token."""
    per_token: float = 0.0
    """Seconds per token written."""
    jitter: float = 0.0
    """Largest relative deviation of both, from 0 to 1; drawn from the request."""
    max_concurrency: int = 0
    """Requests that are answered at a time, per model; the others queue. 0 is no limit."""
    max_model_len: int = 32_768
    """Context in tokens, prompt and answer together."""
    tool_calling: bool = True
    """Whether requests may offer tools; without, tools have to stand in the prompt (tool_mode prompted)."""
    prefix_cache_tokens: int = 2_000_000
    """Tokens that the simulated prefix cache holds, per model."""
    faults: Mapping[str, float] = field(default_factory=dict)
    """Fault rates by kind, see `FaultKind`."""
    fault_seed: int = 0
    """Decides which requests the faults hit."""
    retry_after: float = 1.0
    """Seconds in the Retry-After header of injected 429 and 503."""
    tau2_gold: Path | None = None
    """A file of gold actions that the agent follows on tau2-bench domains; for tests and rehearsals only."""

    def __post_init__(self) -> None:
        for name in ("first_token", "per_token", "max_concurrency", "prefix_cache_tokens", "retry_after"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must not be negative")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"jitter is {self.jitter}; it must be from 0 to 1")
        if self.max_model_len < 1:
            raise InputError(f"max_model_len is {self.max_model_len}; it must be at least 1")
        check_rates(self.faults)
        self.host_and_port()

    def host_and_port(self) -> tuple[str, int]:
        """The two halves of `listen`; brackets around an IPv6 address are taken off."""
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise InputError(f"listen address {self.listen!r} is not HOST:PORT, for example 127.0.0.1:8100")
        return host.strip("[]"), int(port)
