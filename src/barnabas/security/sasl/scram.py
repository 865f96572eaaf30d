"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), client side.

Both sides prove that they know the password without sending it. As in Kafka, names and passwords are plain UTF-8
without normalization, and the login is not bound to a TLS channel. The caller passes the nonce, which must be new each
time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from barnabas.security.sasl import SaslError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1 << 20  # a server that asks for more may only want to consume CPU time

_HEADER: Final = "n,,"  # no channel binding, no authorization identity
_CHANNEL: Final = "c=biws"  # the header again, in base64


class ScramClient:
    """The client side of SCRAM.

    >>> client = ScramClient("SCRAM-SHA-256", "alice", "secret", nonce="fyko+d2lbbFgONRv9qkxdawL")
    >>> client.first()
    b'n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL'
    """

    def __init__(
        self, name: str, username: str, password: str, *, nonce: str, extensions: Mapping[str, str] | None = None
    ) -> None:
        if name not in HASHES:
            raise SaslError(f"{name} is not a SCRAM mechanism; known are {' and '.join(HASHES)}")
        self.name = name
        self._hash = HASHES[name]
        self._password = password.encode()
        self._nonce = nonce
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = ",".join(
            (f"n={escaped}", f"r={nonce}", *(f"{key}={value}" for key, value in (extensions or {}).items()))
        )
        self._server_signature: bytes | None = None
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def first(self) -> bytes:
        return (_HEADER + self._first_bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._is_complete:
            raise SaslError("the server sent a message after its last one")
        if self._server_signature is None:
            return self._final(challenge)
        self._verify(challenge)
        return None

    def _final(self, challenge: bytes) -> bytes:
        fields = _fields(challenge, "first")
        nonce, salt, iterations = fields.get("r", ""), _base64(fields, "s"), _iterations(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not start with the client's")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        without_proof = f"{_CHANNEL},r={nonce}"
        said = b",".join((self._first_bare.encode(), challenge, without_proof.encode()))
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), said, self._hash)
        proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
        self._server_signature = hmac.digest(server_key, said, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, message: bytes) -> None:
        fields = _fields(message, "last")
        if "e" in fields:
            raise SaslError(f"the server rejected the login: {fields['e']}")
        if not hmac.compare_digest(_base64(fields, "v"), self._server_signature or b""):
            raise SaslError("the server does not know the password: its signature is wrong")
        self._is_complete = True


def _fields(message: bytes, which: str) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise SaslError(f"the server's {which} message is not text") from None
    if any(part[1:2] != "=" for part in parts):
        raise SaslError(f"the server's {which} message is not a SCRAM message")
    return {part[0]: part[2:] for part in parts}


def _base64(fields: Mapping[str, str], key: str) -> bytes:
    try:
        return base64.b64decode(fields[key], validate=True)
    except (KeyError, binascii.Error):
        raise SaslError(f"the server's message has no valid {key}=") from None


def _iterations(text: str) -> int:
    iterations = int(text) if text.isdecimal() and len(text) < 10 else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise SaslError(
            f"the server asks for {text or 'no'} iterations ({MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted)"
        )
    return iterations
