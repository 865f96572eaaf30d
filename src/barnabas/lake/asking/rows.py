"""Conversion of Spark rows for output: times as ISO 8601 (UTC), bytes as base64, structs as objects. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any


def plain_value(value: Any) -> Any:
    """Convert a value of Spark to types that the output supports. A time without a zone is UTC, as in all of a lake."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, Mapping):
        return {str(key): plain_value(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(member) for member in value]
    return str(value)
