"""The configs of a client metrics subscription: which metrics clients push, how often, and which clients match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from barnabas.config.definitions import ConfigError, Definition, parse_all, parse_table
from barnabas.config.hash_order import hash_order
from barnabas.config.patterns import InvalidPatternError, compiled
from barnabas.wire.errors import ErrorCode

MIN_INTERVAL_MS = 100
MAX_INTERVAL_MS = 3_600_000
MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_ONLY_IN_JAVA = re.compile(r"&&|(?<!\\)\[[^\]\\]*\[")  # RE2 reads these in another way


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the configs of a subscription."""
    return parse_table(_TABLE)


def validate(configs: Mapping[str, str | None]) -> None:
    """Validate all configs of a subscription. Raises `ConfigError`."""
    if nulls := [name for name, text in configs.items() if text is None]:
        raise ConfigError(nulls[0], f"Null value not supported for client metrics configs: {','.join(nulls)}")
    for name in hash_order(configs):
        if name not in definitions():
            raise ConfigError(name, f"Unknown client metrics configuration: {name}", ErrorCode.INVALID_REQUEST)
    values = parse_all(definitions(), configs)
    interval_ms, match = values["interval.ms"], values["match"]
    if not isinstance(interval_ms, int) or not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        raise ConfigError(
            "interval.ms",
            f"Invalid value {interval_ms} for interval.ms, "
            f"interval must be between {MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)",
            ErrorCode.INVALID_REQUEST,
        )
    parse_match(match if isinstance(match, tuple) else ())


def parse_match(entries: Iterable[str]) -> dict[str, Any]:
    """Return the compiled regular expression for each key. A client matches if every one matches the whole value.

    Expressions are those of RE2. What only Java has is rejected: back references, looking around, possessive quantifiers,
    `\\p{Alpha}`, and classes inside classes.
    """
    patterns = {}
    for entry in entries:
        key, equals, expression = (part.strip() for part in entry.partition("="))
        if not equals or "=" in expression or not expression or key not in MATCH_KEYS:
            raise ConfigError("match", f"Illegal client matching pattern: {entry}")
        try:
            if _ONLY_IN_JAVA.search(expression):
                raise InvalidPatternError("a class inside a class")
            patterns[key] = compiled(expression)
        except InvalidPatternError:
            raise ConfigError("match", f"Illegal client matching pattern: {entry}") from None
    return patterns


_TABLE = """\
metrics list "" medium list+empty
    Prefixes of the metrics that clients should push; * is all, empty is none.
interval.ms int 300000 medium
    How often a matching client pushes its metrics.
match list "" medium list+empty
    Clients that match, as key=regular expression pairs that must all match; empty is every client.
"""
