"""What a token says: its parts, their JSON, and the few claims that a login needs.

A token is read as Kafka reads it: three parts with dots between them, of which the first two are JSON objects.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

MAX_MS: Final = 2**63 - 1
MAX_NAME_BYTES: Final = 32_000  # a text in a record has 32,767 at most, and there is `User:` before the name
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")


class InvalidTokenError(Exception):
    """A token is refused. The client is told the status, and the scope that it lacks; the reason is for the log."""

    def __init__(self, reason: str, *, missing_scope: str | None = None) -> None:
        super().__init__(reason)
        self.missing_scope = missing_scope

    @property
    def status(self) -> str:
        return "invalid_token" if self.missing_scope is None else "insufficient_scope"


class BearerToken(NamedTuple):
    """A token that was checked. Its text is not part of it, so that it appears nowhere."""

    principal_name: str
    expires_at_ms: int
    scopes: frozenset[str] = frozenset()
    issued_at_ms: int | None = None


def parts_of(token: str) -> tuple[str, str, str]:
    """Return header, claims and signature of a signed token, still encoded. Raises `InvalidTokenError`."""
    parts = [part.strip() for part in token.strip().split(".")]
    if len(parts) != 3 or not all(parts):
        raise InvalidTokenError("Malformed JWT provided; expected three sections (header, payload, and signature)")
    return parts[0], parts[1], parts[2]


def decoded(part: str) -> dict[str, Any]:
    """Return the JSON object in a part of a token. Raises `InvalidTokenError`."""
    if not _BASE64URL.fullmatch(part):
        raise InvalidTokenError("malformed Base64 URL encoded value")
    try:
        text = base64.urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
    except binascii.Error:
        raise InvalidTokenError("malformed Base64 URL encoded value") from None
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refused_constant)
    except (ValueError, RecursionError):
        raise InvalidTokenError("malformed JSON") from None
    if not isinstance(value, dict):
        raise InvalidTokenError("malformed JSON")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found


def _refused_constant(name: str) -> None:
    raise ValueError(name)


def checked_claims(claims: Mapping[str, Any], sub_claim: str, scope_claim: str) -> BearerToken:
    """Return what a login needs of the claims, which must be complete and of the right types. Raises `InvalidTokenError`."""
    scopes = _scopes(scope_claim, claims.get(scope_claim))
    expires_s, issued_s = seconds(claims, "exp"), seconds(claims, "iat")
    if expires_s is None:
        raise InvalidTokenError("exp value must be non-null")
    for name, value in (("exp", expires_s), ("iat", issued_s)):
        if value is not None and not 0 <= value <= MAX_MS // 1000:
            raise InvalidTokenError(f"{name} value must be non-negative and not too large")
    subject = claims.get(sub_claim)
    if subject is not None and not isinstance(subject, str):
        raise InvalidTokenError(f"Could not extract the '{sub_claim}' claim from the access token")
    name = checked_name(_stripped(sub_claim, subject))
    return BearerToken(name, expires_s * 1000, scopes, None if issued_s is None else issued_s * 1000)


def seconds(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time among the claims. Raises `InvalidTokenError` if it is not a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"Could not extract the '{name}' claim from the access token")
    if not math.isfinite(value):
        raise InvalidTokenError(f"{name} value must be non-negative and not too large")
    return int(value)


def checked_name(name: str) -> str:
    """Return the name of a principal if requests and records can have it. Raises `InvalidTokenError`."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidTokenError("the principal name has half of a character") from None
    if size > MAX_NAME_BYTES:
        raise InvalidTokenError(f"the principal name has {size} bytes, more than {MAX_NAME_BYTES}")
    return name


def _scopes(name: str, value: Any) -> frozenset[str]:
    scopes: Collection[Any] = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
    stripped = [_stripped(name, scope) for scope in scopes]
    if len(set(stripped)) != len(stripped):
        raise InvalidTokenError(f"{name} value must not contain duplicates")
    return frozenset(stripped)


def _stripped(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidTokenError(f"{name} value must be non-null")
    if not value:
        raise InvalidTokenError(f"{name} value must be non-empty")
    if not value.strip():
        raise InvalidTokenError(f"{name} value must not contain only whitespace")
    return value.strip()
