"""Restrictions of a config beyond its type, with Kafka's error texts.

A validator is a value: `ensure(name, value)` raises `ConfigError` or returns. `validator_of` parses the short form that
is used in the config tables:

    >=1             a number of at least 1           in:a|b          one of these texts
    1..17           a number in this range           nocase:a|b      one of these texts, ignoring case
    list            a list, not empty, not null      list+empty+null:a|b   also empty or null, with only these entries

and the names of checks implemented as functions: gzip-level, loopback-address, non-empty, non-null, offset-reset,
only-loopback-address, quorum-servers, quorum-voters, throttled-replicas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

from barnabas.config.endpoints import is_loopback, parse_addresses, parse_loopback_address, parse_voters
from barnabas.config.values import ConfigError, Value, invalid


class Validator(Protocol):
    """A restriction of a value. `ensure` raises `ConfigError` if it is violated."""

    def ensure(self, name: str, value: Value) -> None: ...


class Range(NamedTuple):
    """A number with a lower and optionally an upper bound, both inclusive."""

    min: float
    max: float | None = None

    def ensure(self, name: str, value: Value) -> None:
        if not isinstance(value, int | float):
            raise invalid(name, value, "Value must be non-null")
        if value < self.min:
            raise invalid(name, value, f"Value must be at least {self.min}")
        if self.max is not None and value > self.max:
            raise invalid(name, value, f"Value must be no more than {self.max}")


class ValidString(NamedTuple):
    """One of a few texts."""

    values: tuple[str, ...]
    ignore_case: bool = False

    def ensure(self, name: str, value: Value) -> None:
        if self.ignore_case:
            if not isinstance(value, str) or value.upper() not in map(str.upper, self.values):
                raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(self.values)}")
        elif value not in self.values:
            raise invalid(name, value, f"String must be one of: {', '.join(self.values)}")


class ValidList(NamedTuple):
    """A list without empty entries. With `values`, only these are allowed."""

    values: tuple[str, ...] = ()
    empty_allowed: bool = False
    null_allowed: bool = False

    def ensure(self, name: str, value: Value) -> None:
        if not isinstance(value, tuple):
            if self.null_allowed:
                return
            raise ConfigError(name, f"Configuration '{name}' values must not be null.")
        if not value and not self.empty_allowed:
            valid = f"[{', '.join(self.values)}]" if self.values else "any non-empty value"
            raise ConfigError(name, f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) < len(value):
            raise ConfigError(name, f"Configuration '{name}' values must not be duplicated.")
        for entry in value:
            if not entry:
                raise ConfigError(name, f"Configuration '{name}' values must not be empty.")
            if self.values:
                ValidString(self.values).ensure(name, entry)


class Check(NamedTuple):
    """A check implemented as a function. `label` is its name in the tables."""

    label: str
    check: Callable[[str, Value], None]

    def ensure(self, name: str, value: Value) -> None:
        self.check(name, value)


def _gzip_level(name: str, value: Value) -> None:
    if not isinstance(value, int):
        raise invalid(name, value, "Value must be non-null")
    if not (1 <= value <= 9 or value == -1):
        raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def _non_empty(name: str, value: Value) -> None:
    if value == "":
        raise invalid(name, value, "String must be non-empty")


def _non_null(name: str, value: Value) -> None:
    if value is None:
        raise invalid(name, value, "entry must be non null")


def _throttled_replicas(name: str, value: Value) -> None:
    entries = value if isinstance(value, tuple) else ()
    # Empty entries at the end are ignored, as if the list were joined and split again.
    while entries and not entries[-1]:
        entries = entries[:-1]
    if value is None or (entries != ("*",) and not all(re.fullmatch("[0-9]+:[0-9]+", entry) for entry in entries)):
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        reason = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        raise invalid(name, value, reason)


_DURATION = (
    r"(?ai)([-+]?)P(?=[-+]?\d|T)(?:([-+]?\d+)D)?"
    r"(?:T(?=[-+]?\d)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?"
)
_DURATION_PARTS_S = (86_400, 3_600, 60, 1)


def duration_ms(text: str) -> int | None:
    """Return the milliseconds of an ISO 8601 duration of days and smaller units, or None if the text is invalid."""
    match = re.fullmatch(_DURATION, text)
    if match is None:
        return None
    sign, *parts, fraction = match.groups()
    seconds = sum(int(part) * unit for part, unit in zip(parts, _DURATION_PARTS_S, strict=True) if part)
    # A Java duration has 64-bit seconds.
    if abs(seconds) >> 63:
        return None
    nanos = int((fraction or "").ljust(9, "0"))
    total_nanos = seconds * 10**9 + (-nanos if (parts[3] or "").startswith("-") else nanos)
    return (-total_nanos if sign == "-" else total_nanos) // 10**6


def _offset_reset(name: str, value: Value) -> None:
    if value in ("earliest", "latest"):
        return
    if isinstance(value, str) and value.startswith("by_duration:"):
        duration = duration_ms(value.removeprefix("by_duration:"))
        if duration is not None and duration >= 0:
            return
    form = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    shown = "null" if value is None else value
    raise invalid(name, value, f"Invalid value `{shown}` for configuration {name}. {form}")


def _quorum_servers(name: str, value: Value) -> None:
    if not isinstance(value, tuple):
        raise invalid(name, value)
    parse_addresses(name, value)


def _quorum_voters(name: str, value: Value) -> None:
    if not isinstance(value, tuple):
        raise invalid(name, value)
    parse_voters(name, value)


def _loopback_address(name: str, value: Value) -> None:
    parse_loopback_address(name, value if isinstance(value, str) else "")


def _only_loopback_address(name: str, value: Value) -> None:
    address = parse_loopback_address(name, value if isinstance(value, str) else "")
    if address is not None and not is_loopback(address.host):
        raise ConfigError(
            name, f"Invalid value {value} for configuration {name}: It must be an address of this machine, such as :0"
        )


_CHECKS: dict[str, Callable[[str, Value], None]] = {
    "gzip-level": _gzip_level,
    "loopback-address": _loopback_address,
    "only-loopback-address": _only_loopback_address,
    "non-empty": _non_empty,
    "non-null": _non_null,
    "offset-reset": _offset_reset,
    "quorum-servers": _quorum_servers,
    "quorum-voters": _quorum_voters,
    "throttled-replicas": _throttled_replicas,
}


@cache
def validator_of(form: str) -> Validator:
    """Return the validator for its short form."""
    if form in _CHECKS:
        return Check(form, _CHECKS[form])
    if form.startswith(">="):
        return Range(_number(form[2:]))
    low, dots, high = form.partition("..")
    if dots:
        return Range(_number(low), _number(high))
    kind, colon, rest = form.partition(":")
    values = tuple(rest.split("|")) if colon else ()
    if kind in ("in", "nocase"):
        return ValidString(values, kind == "nocase")
    base, *flags = kind.split("+")
    if base != "list":
        raise ValueError(f"no validator is written as {form}")
    return ValidList(values, "empty" in flags, "null" in flags)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
