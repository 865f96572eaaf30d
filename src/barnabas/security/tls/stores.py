"""Key and trust stores: PEM as it is, PKCS12 through `cryptography`, JKS with the command that converts it. Pure.

A file of the type JKS is read by what is in it, as in Java: keytool writes PKCS12 unless it is told otherwise.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

TYPES: Final = ("PEM", "PKCS12", "JKS")
_BLOCK: Final = r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----"
_LINE: Final = 64
_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_CONVERT: Final = "keytool -importkeystore -srckeystore {0} -destkeystore {1} -deststoretype PKCS12"
_INSTALL: Final = "PKCS12 needs the extra `security`: pip install 'barnabas[security]'"


class StoreError(ValueError):
    """A store that cannot be used. The text says why and what to do, and has no secret."""


class KeyAndChain(NamedTuple):
    """A private key, which may be encrypted, and its certificates, in PEM."""

    pem: bytes

    def __repr__(self) -> str:
        return "KeyAndChain()"


def wrapped(pem: str) -> str:
    """Return PEM with line breaks, which a value in a properties file may have lost.

    >>> print(wrapped("-----BEGIN CERTIFICATE----- TWFu -----END CERTIFICATE-----"))
    -----BEGIN CERTIFICATE-----
    TWFu
    -----END CERTIFICATE-----
    """
    blocks = []
    for kind, body in re.findall(_BLOCK, pem, re.DOTALL):
        text = "".join(body.split())
        lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
        if ":" in text:  # the headers of an old form of encrypted keys are lines of their own
            lines = body.strip().splitlines()
        blocks.append("\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----")))
    return "\n".join(blocks)


def is_pem(store_type: str) -> bool:
    """Whether a store of this type is PEM. Raises `StoreError` for an unknown type."""
    if store_type.upper() not in TYPES:
        raise StoreError(f"{store_type} is not supported; use one of {', '.join(TYPES)}")
    return store_type.upper() == "PEM"


def read_key_store(data: bytes, location: str, password: str | None, key_password: str | None) -> KeyAndChain:
    """Return the key and the certificates of a PKCS12 file. The key is not encrypted any more."""
    opened = _open(data, location, password or key_password, "keystore")
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (an extra)

    if opened.key is None or opened.cert is None:
        raise StoreError(f"{location} has no private key with a certificate")
    key = opened.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = [each.certificate for each in (opened.cert, *opened.additional_certs)]
    return KeyAndChain(key + b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain))


def read_trust_store(data: bytes, location: str, password: str | None) -> str:
    """Return the certificates of a PKCS12 file in PEM."""
    opened = _open(data, location, password, "truststore")
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (an extra)

    found = [each for each in (opened.cert, *opened.additional_certs) if each is not None]
    if not found:
        raise StoreError(f"{location} has no certificate")
    return "".join(each.certificate.public_bytes(serialization.Encoding.PEM).decode() for each in found)


def _open(data: bytes, location: str, password: str | None, store: str) -> PKCS12KeyAndCertificates:
    if data.startswith(_JKS_MAGIC):
        command = _CONVERT.format(shlex.quote(location), shlex.quote(f"{location}.p12"))
        raise StoreError(
            f"{location} is a JKS file, which only Java reads; convert it and set ssl.{store}.location to the result: {command}"
        )
    if data.lstrip().startswith(b"-----BEGIN "):
        raise StoreError(f"{location} is PEM, and no PKCS12 file: set ssl.{store}.type=PEM")
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  (an extra)
    except ImportError:
        raise StoreError(_INSTALL) from None
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise StoreError(f"{location} is not a PKCS12 file, or the password of the store is wrong") from None
