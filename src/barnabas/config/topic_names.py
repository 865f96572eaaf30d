"""The rule for legal topic names."""

from __future__ import annotations

import re
from typing import Final

from barnabas.wire import ErrorCode, KafkaError

MAX_LENGTH: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid(name: str) -> bool:
    return bool(_LEGAL.fullmatch(name)) and len(name) <= MAX_LENGTH and name not in (".", "..")


def check(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION for an illegal topic name."""
    if not is_valid(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {_why(name)}")


def _why(name: str) -> str:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
