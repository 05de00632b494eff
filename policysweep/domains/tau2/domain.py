"""A tau2-bench domain: loaded once a process, then a source of worlds that cost next to nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from policysweep.domains.tau2 import package
from policysweep.domains.tau2.toolbox import Toolbox
from policysweep.domains.tau2.world import World
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep

CLOCK = "2024-05-15 15:00 EST"
"""The time in both domains: bookings, flights and orders of their databases are to be read as of then."""

INITIAL_HASHES: Mapping[str, str] = {
    "airline": "124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263",
    "retail": "b25c9cb211f5efcaee5dd646054a73c4a9f43f4f5acc32c10713cd9f9ac20e9c",
}
"""The domains that can be played, with the hashes of their databases in tau2-bench."""


class Domain:
    """Policy, tools and original database of a domain. Nothing changes it after it was made."""

    def __init__(self, environment: Any) -> None:
        """`environment` is a tau2-bench environment in its initial state, which the domain takes over."""
        tool_call = package.module("tau2.data_model.message").ToolCall
        self.name: str = environment.domain_name
        self.policy: str = environment.policy
        self._environment_class = type(environment)
        self.agent_box = Toolbox(environment.tools, "assistant", tool_call)
        self.user_box = (
            Toolbox(environment.user_tools, "user", tool_call) if environment.user_tools is not None else None
        )

    def box(self, requestor: ep.Role.ValueType) -> Toolbox | None:
        """The tools of the agent or of the customer."""
        return self.user_box if requestor == ep.ROLE_CUSTOMER else self.agent_box

    def world(self) -> World:
        """A world in the initial state."""
        environment = self._environment_class(
            domain_name=self.name,
            policy=self.policy,
            tools=self.agent_box.copy(),
            user_tools=self.user_box.copy() if self.user_box is not None else None,
        )
        return World(environment, self.agent_box, self.user_box)


_lock = threading.Lock()
_loaded: dict[str, Domain] = {}


def load_domain(name: str) -> Domain:
    """The domain of that name. The first call in a process imports the package and reads the database.

    Raises InputError for a domain that is not served, and when the package is missing or its database is not
    the one that tau2-bench publishes.
    """
    if name not in INITIAL_HASHES:
        raise InputError(f"there is no tau2-bench domain {name!r}: use one of {', '.join(INITIAL_HASHES)}")
    with _lock:
        if name not in _loaded:
            _loaded[name] = _load(name)
        return _loaded[name]


def loaded_domain(name: str) -> Domain | None:
    """The domain if this process has loaded it before; never waits."""
    return _loaded.get(name)


def _load(name: str) -> Domain:
    domain = Domain(package.module(f"tau2.domains.{name}.environment").get_environment())
    found = domain.agent_box.initial_hash()
    if found != INITIAL_HASHES[name]:
        raise InputError(
            f"the {name} database of {package.installed()} has hash {found[:16]}..., not "
            f"{INITIAL_HASHES[name][:16]}...: it was changed or damaged; install it anew with\n"
            f"  {package.INSTALL}"
        )
    return domain
