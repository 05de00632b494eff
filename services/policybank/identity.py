"""Ids that are derived from what they name, so that every process and every retry comes to the same one."""

from __future__ import annotations

from uuid import UUID, uuid5

_NAMESPACE = UUID("6d0f3b0e-6f0e-5b0a-9a63-2f6a4d0c7a11")


def derived_id(*parts: str) -> str:
    """The UUIDv5 of what the parts, any strings, name. Lengths keep ("ab", "c") and ("a", "bc") apart."""
    return str(uuid5(_NAMESPACE, "".join(f"{len(part)}:{part}" for part in parts)))
