"""An authority that signs the certificates of nodes and clients. Needs the extra `security`.

Its one rule: keys exist only in memory, until the caller writes them. They are on the curve P-256, whose handshakes cost
a server a fraction of those with RSA.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

DAYS: Final = 825  # as long as clients of the web accept
AUTHORITY_DAYS: Final = 3650
_CLOCK_SKEW: Final = datetime.timedelta(minutes=10)


class Certificate(NamedTuple):
    """A private key and its certificate, with that of the authority, in PEM."""

    key: str
    chain: str

    def __repr__(self) -> str:
        return "Certificate()"


class Authority:
    """A new authority with its own key. `issue` signs certificates."""

    def __init__(self, name: str, now: datetime.datetime) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            advice = "install the extra: pip install 'barnabas[security]'"
            raise OperationError("certificates need the package cryptography", advice=advice) from None
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = self._builder(self._name, self._key, datetime.timedelta(days=AUTHORITY_DAYS), now)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        self._certificate = _signed(builder, self._key)
        self.pem = _pem(self._certificate)

    @property
    def key(self) -> str:
        """The private key in PEM: whoever has it can sign certificates."""
        return _key_pem(self._key)

    def issue(
        self,
        common_name: str,
        hosts: Iterable[str] = (),
        *,
        valid_from: datetime.datetime | None = None,
        valid_for: datetime.timedelta = datetime.timedelta(days=DAYS),
    ) -> Certificate:
        """Return a certificate for a client, or for a node if it has hosts: names or addresses."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(common_name), key, valid_for, valid_from or self._now)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        names = [_host(each) for each in hosts]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if names else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Certificate(_key_pem(key), _pem(_signed(builder, self._key)) + self.pem)

    def _builder(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        valid_for: datetime.timedelta,
        valid_from: datetime.datetime,
    ) -> x509.CertificateBuilder:
        from cryptography import x509

        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(valid_from - _CLOCK_SKEW)
            .not_valid_after(valid_from + valid_for)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(text: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
