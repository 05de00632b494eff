"""What a store's refusal means, in words that say what to do.

obstore reports a fault as an exception whose text starts with one line for a reader, followed by a dump of
its internals. That line is kept and the dump is dropped; an operating system's error number or a word of the
service's answer decides the advice.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from policysweep.errors import StoreError

_FREE_SPACE = "free space there and run the same command again; what is recorded stays"
_HARD_LINKS = "choose a directory on a file system that allows hard links, which create-if-absent needs"
_NO_BUCKET = "create it first; the store does not do that"
_CREDENTIALS = "set the store's credentials in the environment and check what they allow"

_BY_ERRNO = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EFBIG: "raise the limit on the size of files, or free space there",
    errno.EROFS: "choose a directory that can be written",
    errno.EACCES: "choose a directory that this user can write, or change its permissions",
    errno.EPERM: _HARD_LINKS,
    errno.EOPNOTSUPP: _HARD_LINKS,
    errno.ENOTDIR: "choose a path that leads through directories only",
    errno.EEXIST: "choose a directory, not a file",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}

_BY_WORD = {
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "bucket does not exist": _NO_BUCKET,
    "InvalidAccessKeyId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "AccessDenied": _CREDENTIALS,
    "credential": _CREDENTIALS,
    "metadata": _CREDENTIALS,
}

_ELSE = "check the URL, the network and the store's credentials in the environment"


@contextmanager
def storing(action: str, url: str, name: str = "") -> Iterator[None]:
    """Turn any refusal of the store into a StoreError: what could not be done, where, why, what to do."""
    try:
        yield
    except (BaseError, OSError) as error:
        where = f"{url}/{name}" if name else url
        raise StoreError(f"cannot {action} {where}: {_reason(error)}; {_advice(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    line = str(error).partition("\n")[0]
    return re.sub(r" \(os error \d+\)", "", line).rstrip(". ")


def _advice(error: Exception) -> str:
    if isinstance(error, UnauthenticatedError):
        return _CREDENTIALS
    number = error.errno if isinstance(error, OSError) else None
    if match := re.search(r"\(os error (\d+)\)", str(error)):
        number = int(match.group(1))
    if number in _BY_ERRNO:
        return _BY_ERRNO[number]
    if isinstance(error, PermissionDeniedError):
        return _CREDENTIALS
    return next((advice for word, advice in _BY_WORD.items() if word in str(error)), _ELSE)
