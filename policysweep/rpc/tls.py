"""Mutual TLS: both ends of a gRPC connection show a certificate of an authority that the other one trusts.

    files = tls_files(cert, key, ca)       None when TLS is off; all three or none
    Credentials(files).server()            for the port of a server
    Credentials(files).channel()           for a channel

The files are checked where they are read: a certificate that no peer would accept ends a process at its
start, with the reason, and not its first call. They are read anew when they change, so that a certificate can
be renewed under a running process: servers look at each new connection, clients whenever they take a channel.
A renewal that does not hold together is logged, and what was in force stays.
"""

from __future__ import annotations

import ipaddress
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import grpc
import structlog

from policysweep import telemetry
from policysweep.errors import InputError

_log = structlog.get_logger(__name__)
_FLIGHTS = 8
"""More than the exchanges of any handshake."""

_PATIENCE_SECONDS = 5.0
"""Time after which files that were refused are read again."""

Version = tuple[tuple[int, int, int], ...]
"""What tells one content of the files from the next: device, inode and time of each."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of one party."""

    cert: Path
    """Its certificate, followed by those between it and the authority."""
    key: Path
    ca: Path
    """The authorities that it trusts. One of them issued its own certificate."""

    def flags(self) -> list[str]:
        """The same files as flags of a service."""
        return ["--tls-cert", str(self.cert), "--tls-key", str(self.key), "--tls-ca", str(self.ca)]


class Pem(NamedTuple):
    """The content of the files."""

    cert: bytes
    key: bytes
    ca: bytes


def tls_files(cert: str, key: str, ca: str) -> TlsFiles | None:
    """The files, or None when no file is named. InputError when only some are."""
    if cert and key and ca:
        return TlsFiles(Path(cert), Path(key), Path(ca))
    named = {"--tls-cert": cert, "--tls-key": key, "--tls-ca": ca}
    missing = [flag for flag, path in named.items() if not path]
    if len(missing) == len(named):
        return None
    raise InputError(
        f"{' and '.join(missing)} missing: TLS needs a certificate, its key and the authority, "
        "so name all three files or none"
    )


def is_loopback(listen: str) -> bool:
    """Whether only this machine can reach HOST:PORT."""
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Credentials:
    """What a process shows and whom it trusts."""

    def __init__(self, files: TlsFiles, *, serves: bool = True) -> None:
        """Read the files. `serves` is whether the certificate must also be one for servers.

        Raises InputError for files that cannot be read, that do not belong together, or that no peer with the
        same authorities would accept, for example because the certificate has expired.
        """
        self.files = files
        self._serves = serves
        self._lock = threading.Lock()
        self._look_again = 0.0
        self._ends = 0.0
        self._seen, self._pem = self._read()
        # Asked for at each scrape, so that a process to which nobody connects tells of a renewal too.
        telemetry.TLS_EXPIRY.set_function(self._expiry)

    def server(self) -> grpc.ServerCredentials:
        """For the port of a server: without a certificate that it trusts, a client gets no answer at all."""
        served = self.current()

        # The core calls this in a thread of its own, before each handshake.
        def renewed() -> grpc.ServerCertificateConfiguration | None:
            nonlocal served
            if (now := self.current()) is served:
                return None
            served = now
            return _server_configuration(now)

        return grpc.dynamic_ssl_server_credentials(
            _server_configuration(served),
            renewed,  # type: ignore[arg-type]  # None is for no change, which the published types leave out
            require_client_authentication=True,
        )

    def channel(self) -> grpc.ChannelCredentials:
        """For a channel: its server must have the name that the channel calls."""
        pem = self.current()
        return grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert)

    def current(self) -> Pem:
        """What the files hold now: the same object for as long as they stay as they are."""
        with self._lock:
            if _version(self.files) != self._seen and time.monotonic() >= self._look_again:
                self._renew()
            return self._pem

    def _renew(self) -> None:
        try:
            self._seen, self._pem = self._read()
        except InputError as error:
            # Not for good: what is not valid yet, or half written, may be so no longer.
            self._look_again = time.monotonic() + _PATIENCE_SECONDS
            _log.error("certificate not renewed, the one before stays in force", problem=str(error))
        else:
            _log.info("certificate renewed", cert=str(self.files.cert))

    def _expiry(self) -> float:
        self.current()
        return self._ends

    def _read(self) -> tuple[Version, Pem]:
        files = self.files
        before = _version(files)
        pem = Pem(*(_content(path) for path in (files.cert, files.key, files.ca)))
        ends = _check(files, pem, self._serves)
        if _version(files) != before:
            raise InputError(f"{files.cert}: the TLS files change while they are read")
        self._ends = ends
        return before, pem


def _server_configuration(pem: Pem) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.cert)], root_certificates=pem.ca)


def _version(files: TlsFiles) -> Version:
    return tuple(_stat(path) for path in (files.cert, files.key, files.ca))


def _stat(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0  # reading it will tell
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _check(files: TlsFiles, pem: Pem, serves: bool) -> float:
    """Play the handshake of two parties with these files: what one of them would refuse raises InputError.

    Gives the time at which the certificate ends, in Unix time.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_REQUIRED if serves else ssl.CERT_NONE
    server.verify_mode = ssl.CERT_REQUIRED
    # Into a context that is thrown away, for the sake of a message that names the file.
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files.cert, pem.cert)
    for context in (server, client):
        _trust(context, files.ca, pem.ca)
        _show(context, files)
    try:
        return _handshake(server, client)
    except ssl.SSLCertVerificationError as error:
        raise InputError(
            f"{files.cert}: peers that trust {files.ca} would refuse it: {error.verify_message}"
        ) from error
    except ssl.SSLError as error:
        raise InputError(f"{files.cert}: cannot be used for TLS: {error.reason or error}") from error


def _trust(context: ssl.SSLContext, path: Path, content: bytes) -> None:
    try:
        context.load_verify_locations(cadata=content.decode("ascii"))
    except (UnicodeDecodeError, ValueError, ssl.SSLError) as error:
        raise InputError(f"{path}: holds no certificate in PEM form") from error


def _show(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        # Without a password, a key that needs one would be asked for at the terminal.
        context.load_cert_chain(files.cert, files.key, password="")
    except (ValueError, OSError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            raise InputError(f"{files.key}: is not the key of the certificate in {files.cert}") from error
        raise InputError(f"{files.key}: holds no private key in PEM form without a password") from error


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> float:
    """A handshake in memory: when the client's certificate ends. Raises ssl.SSLError of whoever refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(_FLIGHTS):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = sides[1].getpeercert()
    assert shown, "the server asked for it"
    return ssl.cert_time_to_seconds(str(shown["notAfter"]))
