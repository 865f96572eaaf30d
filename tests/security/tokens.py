"""Bearer tokens for tests: keys, the set of their public halves, and tokens with any claims."""

from __future__ import annotations

import base64
import json
import time
import warnings
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

SECRET = "a secret of sixty-four bytes, so that it is long enough for HS512."


class Keys:
    """New keys of each type, named rsa, ec, ed, and a shared secret named oct."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()
        self.weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "rsa", "use": "sig"},
            {**ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True), "kid": "ec"},
            {**OKPAlgorithm.to_jwk(self.ed.public_key(), as_dict=True), "kid": "ed"},
            {**RSAAlgorithm.to_jwk(self.weak.public_key(), as_dict=True), "kid": "weak"},
            {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "for encryption", "use": "enc"},
            {"kty": "oct", "kid": "oct", "k": encoded(SECRET.encode())},
            {"kty": "unheard of", "kid": "strange"},
        ]

    def jwks(self) -> str:
        return json.dumps({"keys": self.rows()})

    def sign(self, said: Mapping[str, Any] | str, kid: str | None = "rsa", algorithm: str = "RS256") -> str:
        """Return a token that is signed with the key of the algorithm. Claims may be any text."""
        key: Any = self.rsa
        if algorithm.startswith("ES"):
            key = self.ec
        elif algorithm == "EdDSA":
            key = self.ed
        elif algorithm.startswith("HS"):
            key = SECRET
        elif kid == "weak":
            key = self.weak
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the weak key, and claims of wrong types
            # Not jwt.encode, which refuses some wrong claims.
            headers = None if kid is None else {"kid": kid}
            text = said if isinstance(said, str) else json.dumps(dict(said))
            return jwt.PyJWS().encode(text.encode(), key, algorithm, headers)


def claims(**changes: Any) -> dict[str, Any]:
    """Return good claims with changes; None removes one. Names end with an underscore where Python needs it."""
    now_s = int(time.time())
    said = {"sub": "alice", "iat": now_s - 10, "exp": now_s + 3600, "aud": "kafka", "iss": "https://issuer", **changes}
    return {name: value for name, value in said.items() if value is not None}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_token(header: Any, said: Any, signature: str = "") -> str:
    """Return a token of any header and claims, also of wrong ones."""
    parts = (each if isinstance(each, str) else json.dumps(each) for each in (header, said))
    return ".".join((*(encoded(each.encode()) for each in parts), signature))


def unsecured(**changes: Any) -> str:
    return raw_token({"alg": "none"}, claims(**changes))
