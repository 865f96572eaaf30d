"""OAUTHBEARER (RFC 7628): a bearer token in one message, which is readable by anyone who sees the connection.

A refused token is answered with a JSON text, which the client acknowledges with one byte before the login fails. Extensions are
names and values beside the token; as in Kafka, a server accepts them all and uses none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.security.oauth.claims import BearerToken, InvalidTokenError
from barnabas.security.sasl import InvalidCredentialsError, SaslError

NAME: Final = "OAUTHBEARER"
_SEPARATOR: Final = "\x01"
_ACKNOWLEDGED: Final = b"\x01"
_AUTH: Final = "auth"
_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_FIRST: Final = re.compile(
    rf"n,(?:a=({_SASL_NAME}))?,{_SEPARATOR}((?:{_KEY.pattern}={_VALUE.pattern}{_SEPARATOR})*){_SEPARATOR}"
)
_BEARER: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise ValueError for a name or a value that cannot be sent."""
    for name, value in extensions.items():
        if name == _AUTH or not _KEY.fullmatch(name):
            raise ValueError(f"Extension name {name} is invalid")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"Extension value for extension {name} is invalid")


class OAuthBearerClient:
    """The client side of OAUTHBEARER.

    >>> OAuthBearerClient("token", {"traceId": "7"}).first()
    b'n,,\\x01auth=Bearer token\\x01traceId=7\\x01\\x01'
    """

    name = NAME

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        pairs = {_AUTH: f"Bearer {token}", **(extensions or {})}
        shown = "".join(f"{name}={value}{_SEPARATOR}" for name, value in pairs.items())
        self._message = f"n,,{_SEPARATOR}{shown}{_SEPARATOR}".encode()
        self._is_complete = False
        self._refusal = ""

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if self._refusal:
            raise SaslError(f"the server refused the token: {self._refusal}")
        if challenge:
            self._refusal = challenge[:1000].decode(errors="replace")
            return _ACKNOWLEDGED
        self._is_complete = True
        return None


class OAuthBearerServer:
    """The server side of OAUTHBEARER. `check` returns what a token says, and raises `InvalidTokenError`."""

    is_token = False
    claimed_name = ""  # the name is in the token, which is a secret

    def __init__(self, check: Callable[[str], BearerToken]) -> None:
        self._check = check
        self._token: BearerToken | None = None
        self._refusal: SaslError | None = None

    @property
    def is_complete(self) -> bool:
        return self._token is not None

    @property
    def authorization_id(self) -> str:
        return "" if self._token is None else self._token.principal_name

    @property
    def expires_at_ms(self) -> int | None:
        return None if self._token is None else self._token.expires_at_ms

    def work_before(self, message: bytes) -> None:
        return None

    def evaluate(self, message: bytes) -> bytes:
        if self._refusal is not None:
            if message == _ACKNOWLEDGED:
                raise self._refusal
            # Kafka would take another token here. One attempt is enough: a client may connect again.
            raise InvalidCredentialsError("a second token after one that was refused")
        authorization_id, token = _parse_first(message)
        try:
            checked = self._check(token)
        except InvalidTokenError as error:
            text = _refusal_text(error)
            self._refusal = SaslError(text, reason=str(error))
            return text.encode()
        if authorization_id not in ("", checked.principal_name):
            raise SaslError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({checked.principal_name})"
            )
        self._token = checked
        return b""


def _parse_first(message: bytes) -> tuple[str, str]:
    """Return the authorization id and the token. Raises `InvalidCredentialsError`."""
    match = _FIRST.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise InvalidCredentialsError("the message is not one of OAUTHBEARER")
    pairs = dict(pair.split("=", 1) for pair in match[2].split(_SEPARATOR) if pair)
    bearer = _BEARER.fullmatch(pairs.get(_AUTH, ""))
    if bearer is None or bearer[1].lower() != "bearer":
        raise InvalidCredentialsError("the message has no bearer token")
    return match[1] or "", bearer[2]


def _refusal_text(error: InvalidTokenError) -> str:
    scope = "" if error.missing_scope is None else f', "scope":{json.dumps(error.missing_scope)}'
    return f'{{"status":"{error.status}"{scope}}}'
