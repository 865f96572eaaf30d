"""The types of configs: conversion from and to text, as in Kafka's ConfigDef, and the error for an invalid config.

A value does not keep its text: lists are tuples, and numbers are within the range of their type. Further restrictions
of a single config are in `validators`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from math import isfinite, isnan
from typing import TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """The type of a config, with its number in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigError(KafkaError):
    """An invalid config. `message` is Kafka's own text; `str()` always includes the key."""

    message: str

    def __init__(self, key: str, message: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
        super().__init__(code, message)
        self.key = key

    def __str__(self) -> str:
        return self.message if self.key in self.message else f"{self.key}: {self.message}"


_RANGE_BITS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
# Patterns are strings, compiled on first use, because most programs that import this need only a few of them.
_INTEGER = r"[+-]?\d+"
_DOUBLE = r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
_COMMA = r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*"
# The characters that Java's trim removes: everything up to the space.
_BLANKS = "".join(map(chr, range(0x21)))


def trim(text: str) -> str:
    """Return the text without whitespace and control characters at its ends."""
    return text.strip(_BLANKS)


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated list. An empty text has no entries, but `a,` has an empty second one."""
    trimmed = trim(text)
    return tuple(re.split(_COMMA, trimmed)) if trimmed else ()


def parse_value(name: str, text: str | None, type: ConfigType) -> Value:
    """Convert text to a value of this type. A class is its name; its existence is not checked."""
    if text is None:
        return None
    if type is ConfigType.PASSWORD:
        return text
    trimmed = trim(text)
    if type is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if type is ConfigType.LIST:
        return split_list(text)
    if type in _RANGE_BITS:
        number = int(trimmed) if re.fullmatch(_INTEGER, trimmed) else None
        limit = 1 << _RANGE_BITS[type]
        if number is None or not -limit <= number < limit:
            raise invalid(name, text, f"Not a number of type {type.name}")
        return number
    if type is ConfigType.DOUBLE:
        match = re.fullmatch(_DOUBLE, trimmed)
        if match is None:
            raise invalid(name, text, "Not a number of type DOUBLE")
        return float(match[1])
    return trimmed


def format_value(value: Value) -> str | None:
    """Format a value as Kafka does."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def invalid(name: str, value: Value, reason: str | None = None) -> ConfigError:
    """Return Kafka's error for an invalid value of a config."""
    shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else format_value(value)
    message = f"Invalid value {'null' if shown is None else shown} for configuration {name}"
    return ConfigError(name, message if reason is None else f"{message}: {reason}")


def _format_double(value: float) -> str:
    """Format a double as Java does: plain from 0.001 up to ten million, otherwise with an exponent."""
    if isnan(value):
        return "NaN"
    if not isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for digits in range(17) if float(text := f"{value:.{digits}e}") == value)
    mantissa, exponent = shortest.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
