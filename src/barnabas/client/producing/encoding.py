"""The arguments of `Producer.send` as a record: checked, and with key and value as bytes.

Its one rule: only bytes-like values become bytes. Anything else needs a serializer, or is a `TypeError` that names the
argument. Wrong arguments are found here, because later they would fail a whole batch. Pure.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from barnabas.batches import Headers
from barnabas.client.arguments import described, shown
from barnabas.client.records import BytesLike, HeadersLike

NO_HEADERS: Headers = ()
Encoded: TypeAlias = tuple[str, bytes | None, bytes | None, int | None, Headers, int | None]
Serializer: TypeAlias = Callable[[Any], BytesLike]

_MAX_TIMESTAMP_MS = (1 << 63) - 1


class Encoding:
    """The serializers of a producer, None for bytes."""

    __slots__ = ("_key_serializer", "_value_serializer")

    def __init__(self, key_serializer: Serializer | None = None, value_serializer: Serializer | None = None) -> None:
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer

    def encode(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp_ms: int | None,
    ) -> Encoded:
        """Return topic, value, key, partition, headers and timestamp. Raises TypeError, and what serializers raise."""
        if type(topic) is not str:
            _check_topic(topic)
        if value is not None:
            if self._value_serializer is not None:
                value = self._value_serializer(value)
            if type(value) is not bytes:
                value = _as_bytes("value", value, self._value_serializer)
        if key is not None:
            if self._key_serializer is not None:
                key = self._key_serializer(key)
            if type(key) is not bytes:
                key = _as_bytes("key", key, self._key_serializer)
        if partition is not None and type(partition) is not int:
            partition = _as_partition(partition)
        if timestamp_ms is not None:
            timestamp_ms = _as_timestamp(timestamp_ms)
        return topic, value, key, partition, _header_rows(headers) if headers else NO_HEADERS, timestamp_ms


def _as_bytes(name: str, value: Any, serializer: Serializer | None) -> bytes:
    """Return a key or a value as bytes. Raises TypeError if it is not bytes-like."""
    try:
        return bytes(memoryview(value))
    except TypeError:
        if serializer is not None:
            raise TypeError(f"{name}_serializer must return bytes, not {described(value)}") from None
        text = f"{name} must be bytes-like or None, not {described(value)}: {_how_to_encode(value)}"
        raise TypeError(f"{text}, or pass {name}_serializer= to Producer") from None


def _how_to_encode(value: object) -> str:
    return f"encode it, as in {shown(value)}.encode()" if isinstance(value, str) else "encode it to bytes"


def _check_topic(topic: object) -> None:
    """Raise TypeError if the name of a topic is not a str."""
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {described(topic)}")


def _as_partition(partition: object) -> int:
    """Return the number of a partition as int. Raises TypeError if it is not an integer."""
    if (number := _integer(partition)) is None:
        raise TypeError(f"partition must be int or None, not {described(partition)}")
    return number


def _as_timestamp(timestamp_ms: object) -> int:
    """Return a timestamp as int. Raises TypeError if it is not an integer, and ValueError if it is out of range."""
    if (number := _integer(timestamp_ms)) is None:
        remedy = "pass milliseconds since 1970, as in int(time.time() * 1000)"
        raise TypeError(f"timestamp_ms must be int or None, not {described(timestamp_ms)}: {remedy}")
    if not -1 <= number <= _MAX_TIMESTAMP_MS:
        raise ValueError(f"timestamp_ms must be between -1 and {_MAX_TIMESTAMP_MS}, not {number}")
    return number


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return operator.index(value)


def _header_rows(headers: HeadersLike) -> Headers:
    """Return headers as rows of name and bytes. Raises TypeError for a name or a value of a wrong type."""
    rows: Any = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise TypeError(f"headers must be a mapping or (name, value) pairs, not {described(rows)}")
    found = []
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise TypeError(f"headers must be a mapping or (name, value) pairs; {described(row)} is not a pair")
        name, value = row
        if not isinstance(name, str):
            raise TypeError(f"headers: a name must be str, not {described(name)}")
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"headers: the name {name!r} cannot be encoded as UTF-8: {error.reason}") from None
        if value is not None and type(value) is not bytes:
            try:
                value = bytes(memoryview(value))
            except TypeError:
                text = f"headers: the value of {name!r} must be bytes-like or None, not {described(value)}"
                raise TypeError(f"{text}: {_how_to_encode(value)}") from None
        found.append((name, value))
    return tuple(found)
