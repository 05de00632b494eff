"""What a store's refusal means, in words that say what to do.

obstore reports a fault as an exception whose text is one line for a reader and a dump of its internals. The
reason is what is specific in it: an operating system's message or the code that an object store answered.
That, or the system's error number, decides the advice.

An object store that refuses a request (4xx) means it, and a local directory means all that it says. What is
left may pass: no connection, a lost one, a server that is not well or asks for patience.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError, GenericError, UnauthenticatedError

from policysweep.errors import StoreError, StoreUnavailable

_FREE_SPACE = "free space there and run the same command again; what is recorded stays"
_HARD_LINKS = "choose a directory on a file system that allows hard links, which create-if-absent needs"
_NO_BUCKET = "create it first; the store does not do that"
_CREDENTIALS = "check the store's credentials in the environment and what they allow"
_ELSE = "check the URL, the network and the store's settings in the environment"

_FINAL = re.compile(r"status code: 4(?!08|29)\d\d|builder error")
"""A refusal that another try cannot change, or a request that cannot even be made."""
_IDLE = "<Code>RequestTimeout</Code>"
"""How S3 says, with status 400, that a connection was too slow for it."""

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
    "AuthenticationFailed": _CREDENTIALS,
    "AccessDenied": _CREDENTIALS,
    # Where a machine in a cloud asks for the credentials of its role, once the environment holds none.
    "169.254.169.254": "set the store's credentials in the environment",
    "403 Forbidden": _CREDENTIALS,
    "Account must be specified": "set AZURE_STORAGE_ACCOUNT_NAME in the environment",
    "BadScheme": "set AWS_ALLOW_HTTP=true in the environment to use an endpoint without TLS",
}


@contextmanager
def storing(action: str, url: str, name: str = "") -> Iterator[None]:
    """Turn any refusal of the store into a StoreError: what could not be done, where, why, what to do.

    It is a StoreUnavailable when it may pass.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        where = f"{url}/{name}" if name else url
        kind = StoreUnavailable if _may_pass(error) else StoreError
        raise kind(f"cannot {action} {where}: {_reason(error)}; {_advice(error)}") from error


def is_missing_bucket(error: FileNotFoundError) -> bool:
    """Whether there is no such bucket, where only a blob may be missing."""
    return any(word in str(error) for word, advice in _BY_WORD.items() if advice == _NO_BUCKET)


def _may_pass(error: Exception) -> bool:
    text = str(error)
    if not isinstance(error, GenericError) or text.startswith("Generic LocalFileSystem"):
        return False
    return _IDLE in text or not _FINAL.search(text)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    text = str(error)
    if answered := re.search(r"<Code>(\w+)</Code>", text):
        return answered.group(1)
    line = text.partition("\n")[0]
    line = re.sub(r"^Generic \w+ error: |Error performing .* - | \(os error \d+\)", "", line)
    inner = re.search(r'(?:message|error): "([^"]+)"', text)
    return f"{line} ({inner.group(1)})" if inner and inner.group(1) not in line else line


def _advice(error: Exception) -> str:
    if isinstance(error, UnauthenticatedError):
        return _CREDENTIALS
    number = error.errno if isinstance(error, OSError) else None
    if match := re.search(r"\(os error (\d+)\)", str(error)):
        number = int(match.group(1))
    if number in _BY_ERRNO:
        return _BY_ERRNO[number]
    return next((advice for word, advice in _BY_WORD.items() if word in str(error)), _ELSE)
