"""The TLS options of the commands that call services."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from policysweep.rpc.tls import Credentials, tls_files

_OPTIONS = {
    "cert": "File with this command's certificate, in PEM form; none calls services without TLS.",
    "key": "File with the key of that certificate.",
    "ca": "File with the authorities that the services' certificates must be of.",
}


def tls_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --tls-cert, --tls-key and --tls-ca; the command gets them as `credentials`, None without TLS."""

    @functools.wraps(command)
    def with_credentials(*args: Any, tls_cert: str, tls_key: str, tls_ca: str, **kwargs: Any) -> None:
        files = tls_files(tls_cert, tls_key, tls_ca)
        # Services that the command starts itself are given the files too, and check that they can serve.
        credentials = Credentials(files, serves=False) if files else None
        command(*args, credentials=credentials, **kwargs)

    wrapped: Callable[..., None] = with_credentials
    for name, text in reversed(_OPTIONS.items()):
        variable = f"POLICYSWEEP_TLS_{name.upper()}"
        option = click.option(
            f"--tls-{name}", default="", metavar="FILE", envvar=variable, show_envvar=True, help=text
        )
        wrapped = option(wrapped)
    return wrapped
