"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677).

Both sides prove that they know the password without sending it. As in Kafka, names and passwords are plain UTF-8
without normalization, and the login is not bound to a TLS channel. The caller passes the nonce, which must be new each
time. A server knows a credential derived from the password. For an unknown user it makes one up, so that the exchange
fails where it fails for a wrong password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.security.sasl import InvalidCredentialsError, SaslError
from barnabas.security.sasl.plain import OTHER_AUTHORIZATION_ID

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1 << 20  # a server that asks for more may only want to consume CPU time

DEFAULT_ITERATIONS: Final = 4096
MAX_FAKE_SALT_BYTES: Final = 256
_FAKE_SALT_BYTES: Final = 32
_JAVAS_SALT: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"  # without `,` and `=`, except in escapes
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = rf"n,(?:a=({_NAME}))?,((?:m={_VALUE},)?n=({_NAME}),r=({_NONCE})({_EXTENSIONS}))"
_CLIENT_FINAL: Final = rf"(c={_BASE64},r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})"

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


class ScramCredential(NamedTuple):
    """What a server keeps of a password: enough to check a login, not enough to log in."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def fake_credential(name: str, user: str, secret: bytes, others: Sequence[ScramCredential] = ()) -> ScramCredential:
    """Return a credential for a user who does not exist. It is the same each time, as that of a real user is, and looks like
    one of `others`: programs differ in their salts, and users in their iterations.

    >>> credential = fake_credential("SCRAM-SHA-256", "nobody", b"random")
    >>> credential == fake_credential("SCRAM-SHA-256", "nobody", b"random")
    True
    """
    digest = HASHES[name]
    seed, stored_key, server_key = (
        hmac.digest(secret, b"\0".join((purpose, digest.encode(), user.encode())), digest)
        for purpose in (b"salt", b"stored key", b"server key")
    )
    like = others[seed[-1] % len(others)] if others else ScramCredential(bytes(_FAKE_SALT_BYTES), b"", b"", 0)
    salt = hashlib.shake_256(seed).digest(min(len(like.salt), MAX_FAKE_SALT_BYTES))
    if not like.salt.strip(_JAVAS_SALT):
        salt = bytes(_JAVAS_SALT[byte % len(_JAVAS_SALT)] for byte in salt)
    return ScramCredential(salt, stored_key, server_key, like.iterations or DEFAULT_ITERATIONS)


def credential_of_password(name: str, password: str, salt: bytes) -> ScramCredential:
    """Return the credential of a password. It takes a millisecond or two."""
    digest = HASHES[name]
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, DEFAULT_ITERATIONS)
    stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", digest), DEFAULT_ITERATIONS)


class ScramToken(NamedTuple):
    """A delegation token as a user: its owner, when it expires, and the credential of its HMAC."""

    owner: str
    expires_at_ms: int
    credential: ScramCredential


class ScramServer:
    """The server side of SCRAM. `credential_of` returns None for an unknown user; `secret` makes up credentials for these,
    which look like some of `others`.

    With the extension `tokenauth=true` the user name is the id of a delegation token, which `token_of` finds. Other extensions
    are ignored. `prepare_token` returns the work that makes the credential of a token known, if that has to be done.
    """

    def __init__(
        self,
        name: str,
        credential_of: Callable[[str], ScramCredential | None],
        *,
        nonce: str,
        secret: bytes,
        others: Sequence[ScramCredential] = (),
        token_of: Callable[[str], ScramToken | None] = lambda token_id: None,
        prepare_token: Callable[[str], Callable[[], object] | None] = lambda token_id: None,
    ) -> None:
        self.name = name
        self._hash = HASHES[name]
        self._credential_of = credential_of
        self._token_of = token_of
        self._prepare_token = prepare_token
        self._token: ScramToken | None = None
        self._nonce = nonce
        self._secret = secret
        self._others = others
        self._credential: ScramCredential | None = None
        self._is_known = False
        self._user = ""
        self._said = b""
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    @property
    def authorization_id(self) -> str:
        return "" if not self._is_complete else self._user if self._token is None else self._token.owner

    @property
    def expires_at_ms(self) -> int | None:
        return None if self._token is None else self._token.expires_at_ms

    @property
    def is_token(self) -> bool:
        return self._token is not None

    @property
    def claimed_name(self) -> str:
        return self._user

    def work_before(self, message: bytes) -> Callable[[], object] | None:
        if self._credential is not None:
            return None
        match = re.fullmatch(_CLIENT_FIRST, message.decode("ascii", "replace"))
        return self._prepare_token(_unescaped(match[3])) if match is not None and _is_token(match[5]) else None

    def evaluate(self, message: bytes) -> bytes:
        if self._is_complete:
            raise InvalidCredentialsError("a message after the last one")
        if self._credential is None:
            return self._first(message)
        return self._final(message, self._credential)

    def _first(self, message: bytes) -> bytes:
        match = re.fullmatch(_CLIENT_FIRST, _text(message))
        if match is None:
            raise InvalidCredentialsError("the first message is not a SCRAM message")
        authorization_id, bare, name, nonce, extensions = match.groups()
        self._user = _unescaped(name)
        credential = self._find(extensions)
        self._is_known = credential is not None
        if (authorization_id or self._user) != self._user:
            raise SaslError(OTHER_AUTHORIZATION_ID)
        # For known users too: it takes the same time.
        fake = fake_credential(self.name, self._user, self._secret, self._others)
        if credential is None:
            credential = fake
        elif credential.iterations < MIN_ITERATIONS:
            raise InvalidCredentialsError(f"{credential.iterations} iterations are fewer than {MIN_ITERATIONS}")
        self._credential = credential
        self._nonce = nonce + self._nonce
        answer = f"r={self._nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}".encode()
        self._said = bare.encode() + b"," + answer
        return answer

    def _find(self, extensions: str) -> ScramCredential | None:
        if not _is_token(extensions):
            return self._credential_of(self._user)
        self._token = self._token_of(self._user)
        return None if self._token is None else self._token.credential

    def _final(self, message: bytes, credential: ScramCredential) -> bytes:
        match = re.fullmatch(_CLIENT_FINAL, _text(message))
        if match is None:
            raise InvalidCredentialsError("the last message is not a SCRAM message")
        without_proof, nonce, proof = match[1], match[2], base64.b64decode(match[3])
        if not hmac.compare_digest(nonce, self._nonce):
            raise InvalidCredentialsError("the nonce is not that of this login")
        said = b",".join((self._said, without_proof.encode()))
        signature = hmac.digest(credential.stored_key, said, self._hash)
        client_key = bytes(key ^ sign for key, sign in zip(proof, signature, strict=False))
        is_equal = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), credential.stored_key)
        if not is_equal or not self._is_known:
            raise InvalidCredentialsError("the proof is wrong")
        self._is_complete = True
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, said, self._hash))


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _is_token(extensions: str) -> bool:
    named = dict(each.split("=", 1) for each in extensions.split(",") if each)
    return named.get("tokenauth", "").lower() == "true"


def _text(message: bytes) -> str:
    try:
        return message.decode("ascii")
    except UnicodeDecodeError:
        raise InvalidCredentialsError("the message is not text") from None
