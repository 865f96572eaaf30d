"""Tokens without a signature, for tests: a client says who it is, and the server believes it.

Options are those of Kafka in the JAAS line, with its defaults: `unsecuredLoginStringClaim_sub="alice"` on the client,
`unsecuredValidatorRequiredScope="kafka"` on the server.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.security.oauth.claims import MAX_MS, BearerToken, InvalidTokenError, checked_name, decoded

LOGIN: Final = "unsecuredLogin"
VALIDATOR: Final = "unsecuredValidator"
EXTENSION: Final = f"{LOGIN}Extension_"
_DEFAULT_LIFETIME_S: Final = "3600"
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class Rules(NamedTuple):
    """What a server demands of a token."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: Sequence[str] = ()
    clock_skew_ms: int = 0


# --- the client


def make_token(options: Mapping[str, str], now_ms: int) -> str:
    """Return a token with the claims in the options. Raises ValueError.

    >>> make_token({"unsecuredLoginStringClaim_sub": "alice"}, now_ms=0).split(".")[0]
    'eyJhbGciOiJub25lIn0'
    """
    lifetime = options.get(f"{LOGIN}LifetimeSeconds", _DEFAULT_LIFETIME_S)
    if not re.fullmatch(r"[+-]?\d{1,18}", lifetime, re.ASCII):
        raise ValueError(f"{LOGIN}LifetimeSeconds is not a number")
    claims: dict[str, Any] = {"exp": now_ms / 1000 + int(lifetime), "iat": now_ms / 1000}
    for prefix, value_of in _CLAIMS.items():
        for option, text in options.items():
            name = option.removeprefix(prefix)
            if name not in ("", option):
                if name in ("exp", "iat"):
                    raise ValueError(f"Cannot explicitly set the '{name}' claim")
                claims[name] = value_of(text)
    principal_claim = _name(options, f"{LOGIN}PrincipalClaimName", "sub")
    principal = claims.get(principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise ValueError(f"No principal name in JWT claim: {principal_claim}")
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("a number claim is not a number")
    return value


def _list(text: str) -> list[str]:
    """Return the elements of a list, whose first character separates them, as in `|one|two`."""
    return text[1:].split(text[0]) if len(text) > 1 else []


_CLAIMS: Final[Mapping[str, Callable[[str], Any]]] = {
    f"{LOGIN}StringClaim_": str,
    f"{LOGIN}NumberClaim_": _number,
    f"{LOGIN}ListClaim_": _list,
}


# --- the server


def parse_rules(options: Mapping[str, str]) -> Rules:
    """Return the server's rules from its JAAS options. Raises ValueError."""
    skew = options.get(f"{VALIDATOR}AllowableClockSkewMs", "").strip() or "0"
    if not re.fullmatch(r"[+-]?\d{1,9}", skew, re.ASCII):
        raise ValueError(f"{VALIDATOR}AllowableClockSkewMs is not a number: {skew}")
    if int(skew) < 0:
        raise ValueError(f"Allowable clock skew millis must not be negative: {skew}")
    scopes = options.get(f"{VALIDATOR}RequiredScope", "").split()
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise ValueError(f"Invalid scope value: {scope}")
    return Rules(
        _name(options, f"{VALIDATOR}PrincipalClaimName", "sub"),
        _name(options, f"{VALIDATOR}ScopeClaimName", "scope"),
        scopes,
        int(skew),
    )


def _name(options: Mapping[str, str], option: str, default: str) -> str:
    return options.get(option, "").strip() or default


def check_token(token: str, rules: Rules, now_ms: int) -> BearerToken:
    """Return what a token without a signature says. Raises `InvalidTokenError`."""
    header, claims = _parts(token)
    if header.get("alg") != "none":
        raise InvalidTokenError("Unsecured JWS must have 'none' for an algorithm")
    scopes = _scopes(claims, rules.scope_claim)
    expires_s, issued_s = _time(claims, "exp"), _time(claims, "iat")
    if expires_s is None:
        raise InvalidTokenError("No expiration time in JWT")
    principal = claims.get(rules.principal_claim)
    if principal is not None and not isinstance(principal, str):
        raise InvalidTokenError(f"The '{rules.principal_claim}' claim was not of type String")
    if not principal or not principal.strip():
        raise InvalidTokenError(f"No principal name in JWT claim: {rules.principal_claim}")
    if issued_s is not None and issued_s * 1000 > now_ms + rules.clock_skew_ms:
        raise InvalidTokenError("The Issued At value was after the indicated time plus allowable clock skew")
    if now_ms - rules.clock_skew_ms >= expires_s * 1000:
        raise InvalidTokenError(
            "The indicated time minus allowable clock skew was on or after the Expiration Time value"
        )
    if issued_s is not None and expires_s <= issued_s:
        raise InvalidTokenError("The Expiration Time time was not after the Issued At time")
    if not scopes.issuperset(rules.required_scopes):
        raise InvalidTokenError("The provided scope was missing a required scope", missing_scope=_shown(rules))
    return BearerToken(checked_name(principal), _ms(expires_s), scopes, None if issued_s is None else _ms(issued_s))


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if ".." in token:
        raise InvalidTokenError("Malformed compact serialization contains '..'")
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidTokenError(
            "Unsecured JWS compact serializations must have 3 dot-separated Base64URL-encoded values"
        )
    header, claims = decoded(parts[0]), decoded(parts[1])
    if header.get("alg") == "none" and parts[2]:
        raise InvalidTokenError("Unsecured JWS must not contain a digital signature")
    return header, claims


def _scopes(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    value = claims.get(name)
    if isinstance(value, str):
        value = [value]
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise InvalidTokenError(f"The '{name}' claim was not of type List")
    return frozenset(scope.strip() for scope in value if isinstance(scope, str) and scope.strip())


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InvalidTokenError(f"The '{name}' claim was not of type Number")
    return None if value is None else min(float(value), MAX_MS / 1000) if value < MAX_MS else MAX_MS / 1000


def _ms(time_s: float) -> int:
    return min(round(time_s * 1000), MAX_MS)


def _shown(rules: Rules) -> str:
    return f"[{', '.join(rules.required_scopes)}]"
