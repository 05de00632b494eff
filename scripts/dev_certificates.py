"""Certificates for development and tests: an authority, and a certificate with its key for each name.

    python scripts/dev_certificates.py FOLDER [NAME ...] [--expired]

writes FOLDER/ca.crt, FOLDER/ca.key, and for each name (all services and the driver if none is given)
FOLDER/NAME/{tls.crt,tls.key,ca.crt}, as the keys of a Kubernetes TLS Secret are named. A certificate is good
for the name, for NAME.policysweep.svc, for localhost and for the loopback addresses. The same folder again
adds names under the same authority. Not for production: the authority's key lies beside the certificates.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAMES = ("simulator", "agent", "judge", "policybank", "driver")
NAMESPACE = "policysweep"
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Who signs."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, name: str = "policysweep development") -> Authority:
        """A new one, for a year."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = (
            _builder(name, name, key, (-_DAY, 365 * _DAY))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(built.sign(key, hashes.SHA256()), key)

    @classmethod
    def kept(cls, folder: Path) -> Authority:
        """The one of the folder, made if there is none."""
        certificate, key = folder / "ca.crt", folder / "ca.key"
        if not key.exists():
            made = cls.make()
            write_private(key, _pem(made.key))
            certificate.write_bytes(made.pem)
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey), f"{key} was not made by this script"
        return cls(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded)

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        valid: tuple[datetime.timedelta, datetime.timedelta] = (-_DAY, 90 * _DAY),
    ) -> Path:
        """Write tls.crt, tls.key and ca.crt for names into the folder; `valid` counts from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        built = (
            _builder(names[0], str(issuer), key, valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(_authority_key(self.key), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName(list(_alternatives(names))), critical=False)
        )
        folder.mkdir(parents=True, exist_ok=True)
        certificate = built.sign(self.key, hashes.SHA256())
        write_private(folder / "tls.key", _pem(key))
        (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / "ca.crt").write_bytes(self.pem)
        return folder


def _builder(
    subject: str,
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    valid: tuple[datetime.timedelta, datetime.timedelta],
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        _name(issuer),
        _name(subject),
        key.public_key(),
        x509.random_serial_number(),
        now + valid[0],
        now + valid[1],
    )


def _authority_key(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: Iterable[str]) -> Iterable[x509.GeneralName]:
    for name in names:
        yield x509.DNSName(name)
        yield x509.DNSName(f"{name}.{NAMESPACE}.svc")
    yield x509.DNSName("localhost")
    yield x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    yield x509.IPAddress(ipaddress.ip_address("::1"))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="NAME", help="a name, or NAME=SAN,SAN for more names"
    )
    parser.add_argument("--expired", action="store_true", help="certificates that ended yesterday")
    options = parser.parse_args()
    authority = Authority.kept(options.folder)
    valid = (-10 * _DAY, -_DAY) if options.expired else (-_DAY, 90 * _DAY)
    for given in options.names:
        name, _, more = given.partition("=")
        authority.issue(options.folder / name, [name, *filter(None, more.split(","))], valid=valid)


if __name__ == "__main__":
    main()
