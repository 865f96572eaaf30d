"""Tokens with a signature, checked against a set of keys (JWKS, RFC 7517) as Kafka's broker does.

PyJWT parses the keys and verifies the signature. Which key is tried, and which claims are demanded, follows Kafka: the key has
the token's key id and the type that the algorithm needs, `exp` and `iat` must be there, and a token for some audience is
refused unless that audience is expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.security.oauth.claims import BearerToken, InvalidTokenError, checked_claims, decoded, parts_of, seconds

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("HS256", "HS384", "HS512"), "oct"),
    "EdDSA": "OKP",
}
"""The accepted algorithms with the type of key that each needs. There is no `none`."""

MAX_KEYS: Final = 1000
MIN_RSA_BITS: Final = 2048
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_PRIVATE: Final = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth"))


class MissingKeyError(InvalidTokenError):
    """No key fits the token. A newer set of keys may have one."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("Unable to find a suitable verification key")
        self.key_id = key_id


class Key(NamedTuple):
    """One public key, and what its JWK says about it."""

    key_type: str
    attributes: Mapping[str, Any]
    parsed: PyJWK | None

    def __repr__(self) -> str:
        return f"Key({self.key_type}, {self.attributes.get('kid')!r})"


class Rules(NamedTuple):
    """What a server demands of a token, from its settings `sasl.oauthbearer.*`."""

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    clock_skew_s: int = 30


def parse_keys(text: str | bytes) -> tuple[Key, ...]:
    """Return the keys of a set in JSON. Keys of unknown types are left out. Raises ValueError."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise ValueError("signatures need the extra `security`: pip install 'barnabas[security]'")
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("the set of keys is not JSON") from None
    rows = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise ValueError('the set of keys has no array "keys"')
    return tuple(_parsed_keys(rows[:MAX_KEYS]))


def _parsed_keys(rows: Sequence[Any]) -> Iterator[Key]:
    from jwt import PyJWK  # noqa: PLC0415 - only nodes that check signatures need it
    from jwt.exceptions import PyJWTError  # noqa: PLC0415

    for row in rows:
        if not isinstance(row, dict) or row.get("kty") not in ALGORITHMS.values():
            continue
        public = {name: value for name, value in row.items() if name not in _PRIVATE}
        attributes = {name: value for name, value in public.items() if name in ("kid", "use", "alg", "crv", "key_ops")}
        algorithm = attributes.get("alg")
        try:
            # A key without an algorithm is good for all of its type; which one PyJWT assumes does not matter.
            parsed = PyJWK(public) if algorithm in ALGORITHMS else PyJWK({**public, "alg": _any_algorithm(public)})
        except (PyJWTError, ValueError, TypeError, KeyError):
            continue
        yield Key(row["kty"], attributes, parsed)


def _any_algorithm(row: Mapping[str, Any]) -> str:
    curves = {curve: name for name, curve in _CURVES.items()}
    fitting = (name for name, key_type in ALGORITHMS.items() if key_type == row["kty"])
    return curves.get(str(row.get("crv"))) or next(fitting)


def check_token(token: str, keys: Sequence[Key], rules: Rules, now_ms: int) -> BearerToken:
    """Return what a token says if its signature and its claims are right. Raises `InvalidTokenError`."""
    header, claims, _ = parts_of(token)
    algorithm, key_id = _checked_header(decoded(header))
    _verify(token.strip(), _select(keys, algorithm, key_id), algorithm)
    said = decoded(claims)
    _check_times(said, rules, now_ms // 1000)
    _check_audience(said.get("aud"), rules.audiences)
    for name in ("iss", "sub", "jti"):
        if said.get(name) is not None and not isinstance(said[name], str):
            raise InvalidTokenError(f"the claim {name} is not a text")
    if rules.issuer is not None and said.get("iss") != rules.issuer:
        raise InvalidTokenError("the issuer (iss) is not the expected one")
    return checked_claims(said, rules.sub_claim, rules.scope_claim)


def _checked_header(header: Mapping[str, Any]) -> tuple[str, str | None]:
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InvalidTokenError("the token's algorithm is not accepted")
    if key_id is not None and not isinstance(key_id, str):
        raise InvalidTokenError("the token's key id (kid) is not a text")
    if "crit" in header or "b64" in header:
        raise InvalidTokenError("the token's header has critical extensions")
    return algorithm, key_id


def _select(keys: Sequence[Key], algorithm: str, key_id: str | None) -> Key:
    """Return the first key that fits, as Kafka does: it tries no second one."""
    key_type = ALGORITHMS[algorithm]
    fitting = [each for each in keys if each.key_type == key_type and _is_for_signatures(each.attributes)]
    if key_id is not None:
        fitting = [each for each in fitting if each.attributes.get("kid") == key_id]
    for name, wanted in (("alg", algorithm), ("crv", _CURVES.get(algorithm))):
        if len(fitting) > 1 and wanted is not None:
            fitting = [each for each in fitting if each.attributes.get(name) in (None, wanted)]
    if not fitting:
        raise MissingKeyError(key_id)
    return fitting[0]


def _is_for_signatures(attributes: Mapping[str, Any]) -> bool:
    operations = attributes.get("key_ops")
    return attributes.get("use") in (None, "sig") and (operations is None or "verify" in operations)


def _verify(token: str, key: Key, algorithm: str) -> None:
    from jwt import PyJWS  # noqa: PLC0415
    from jwt.exceptions import PyJWTError  # noqa: PLC0415

    assert key.parsed is not None
    _check_strength(key, algorithm)
    try:
        PyJWS(algorithms=[algorithm]).decode(token, key.parsed.key, algorithms=[algorithm])
    except (PyJWTError, ValueError, TypeError):
        raise InvalidTokenError("the signature is invalid") from None


def _check_strength(key: Key, algorithm: str) -> None:
    assert key.parsed is not None
    material = key.parsed.key
    if key.key_type == "RSA" and material.key_size < MIN_RSA_BITS:
        raise InvalidTokenError(f"the RSA key has fewer than {MIN_RSA_BITS} bits")
    if key.key_type == "oct" and len(material) * 8 < int(algorithm[2:]):
        raise InvalidTokenError(f"the secret key is too short for {algorithm}")
    if key.key_type == "EC" and key.attributes.get("crv") != _CURVES[algorithm]:
        raise InvalidTokenError(f"the curve of the key is not that of {algorithm}")


def _check_times(claims: Mapping[str, Any], rules: Rules, now_s: int) -> None:
    expires_s, issued_s, not_before_s = (seconds(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None:
        raise InvalidTokenError("No Expiration Time (exp) claim present.")
    if issued_s is None:
        raise InvalidTokenError("No Issued At (iat) claim present.")
    if now_s - rules.clock_skew_s >= expires_s:
        raise InvalidTokenError("The JWT is no longer valid: the Expiration Time (exp) has passed")
    if expires_s < issued_s:
        raise InvalidTokenError("The Expiration Time (exp) is before the Issued At (iat) time")
    if not_before_s is not None and expires_s < not_before_s:
        raise InvalidTokenError("The Expiration Time (exp) is before the Not Before (nbf) time")
    if not_before_s is not None and now_s + rules.clock_skew_s < not_before_s:
        raise InvalidTokenError("The JWT is not yet valid: the Not Before (nbf) time has not come")


def _check_audience(audience: Any, expected: frozenset[str]) -> None:
    if audience is None:
        if expected:
            raise InvalidTokenError("No Audience (aud) claim present.")
        return
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise InvalidTokenError("the audience (aud) is not a text or a list of texts")
    if expected.isdisjoint(audiences):
        missing = "" if expected else ", and none is expected"
        raise InvalidTokenError(f"the audience (aud) is not an expected one{missing}")
