"""Ends with a clear message when the interpreter is too old for the project."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is the check
    sys.exit(
        f"policysweep needs Python 3.11 or newer, {sys.executable} is {sys.version.split()[0]}; "
        "name another with `make PYTHON=python3.11 ...`"
    )
