"""Parsing of SCRAM credentials for the formatting of directories: `SCRAM-SHA-256=[name=alice,password=secret]`.

Its one rule: a password is converted to a record at once, and not stored. As in Kafka, the defaults are a random salt and
4096 iterations. A salted password may be given instead, together with its salt.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from random import Random
from typing import Final, NamedTuple

from barnabas.wire.records.metadata import UserScramCredentialRecord

DEFAULT_ITERATIONS: Final = 4096
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384

_SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramArgumentError(ValueError):
    """An argument that is not a credential; the text is Kafka's."""


class _Mechanism(NamedTuple):
    type: int
    enum_name: str
    digest: str


_MECHANISMS: Final = {
    "SCRAM-SHA-256": _Mechanism(1, "SCRAM_SHA_256", "sha256"),
    "SCRAM-SHA-512": _Mechanism(2, "SCRAM_SHA_512", "sha512"),
}


def parse_scram_argument(argument: str, random: Random) -> UserScramCredentialRecord:
    """Return the record of one argument; `random` generates a missing salt. Raises ScramArgumentError."""
    mechanism, given = _split(argument.strip())
    name = given.pop("name", None)
    if name is None:
        raise ScramArgumentError("You must supply 'name' to add-scram")
    salt_text = given.pop("salt", None)
    salt = None if salt_text is None else _decode(salt_text, "salt")
    iterations = _iterations(given.pop("iterations", str(DEFAULT_ITERATIONS)))
    password, salted_text = given.pop("password", None), given.pop("saltedpassword", None)
    salted_password: bytes | None = None
    if password is None:
        if salted_text is None:
            raise ScramArgumentError("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if salt is None:
            raise ScramArgumentError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted_password = _decode(salted_text, "saltedPassword")
    if given:
        raise ScramArgumentError(f"Unknown SCRAM configurations: {', '.join(sorted(given))}")
    for wrong, sign, bound in (
        (iterations < MIN_ITERATIONS, ">=", MIN_ITERATIONS),
        (iterations > MAX_ITERATIONS, "<=", MAX_ITERATIONS),
    ):
        if wrong:
            text = f"The 'iterations' value must be {sign} {bound} for add-scram using {mechanism.enum_name}"
            raise ScramArgumentError(text)
    if salt is None:
        salt = _random_salt(random)
    if salted_password is None:
        salted_password = hashlib.pbkdf2_hmac(mechanism.digest, (password or "").encode(), salt, iterations)
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


def _split(argument: str) -> tuple[_Mechanism, dict[str, str]]:
    name, equals, configuration = argument.partition("=")
    if not equals:
        raise ScramArgumentError(f"Failed to find equals sign in SCRAM argument '{argument}'")
    if name not in _MECHANISMS:
        raise ScramArgumentError(f"The add-scram mechanism {name} is not supported.")
    if not configuration.startswith("["):
        raise ScramArgumentError("Expected configuration string to start with [")
    if not configuration.endswith("]"):
        raise ScramArgumentError("Expected configuration string to end with ]")
    parts = configuration[1:-1].split(",")
    while len(parts) > 1 and not parts[-1]:  # a split in Java drops empty pieces at the end
        parts.pop()
    return _MECHANISMS[name], dict(map(_component, parts))


def _component(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ScramArgumentError(f"No equals sign found in SCRAM component: {text}")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _decode(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ScramArgumentError(f"Failed to decode given {what}: {text}") from None


def _iterations(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -(2**31) <= int(text) < 2**31:
        raise ScramArgumentError(f"Failed to parse iterations count: {text}")
    return int(text)


def _random_salt(random: Random) -> bytes:
    """Return a random number of 130 bits, in base 36."""
    value, digits = random.getrandbits(_SALT_BITS), ""
    while value or not digits:
        value, digit = divmod(value, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits.encode()
