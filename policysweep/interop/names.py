"""Enums of the contract as files of others spell them: by wire name, without prefix."""

from __future__ import annotations

from google.protobuf.descriptor import EnumDescriptor

from policysweep.errors import InputError

_UNSPECIFIED = "UNSPECIFIED"


def wire_name(enum: EnumDescriptor, number: int) -> str:
    """The name of a number, for 0 "UNSPECIFIED". InputError for a number that this version does not know."""
    if number not in enum.values_by_number:
        raise InputError(
            f"the run holds {enum.name} {number}, which this version of policysweep does not know: "
            "use the version that recorded it"
        )
    prefix = enum.values_by_number[0].name.removesuffix(_UNSPECIFIED)
    return enum.values_by_number[number].name.removeprefix(prefix)


def name_or_none(enum: EnumDescriptor, number: int) -> str | None:
    """The same, with None for 0."""
    return wire_name(enum, number) if number else None
