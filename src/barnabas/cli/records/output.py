"""Rows of records for people and programs. Pure.

Its one rule: nothing is lost. Bytes that cannot be shown in the requested form are shown as text, or as Base64 if they are not
text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from barnabas.cli.terminal.output import utc_time
from barnabas.client.share_consuming.acquired import ShareRecord
from barnabas.operations.records.filters import Shown, show
from barnabas.wire.json_text import JsonText


class DecodedRecord(NamedTuple):
    """A record of an internal topic, with its key and value as JSON text. `type` is the name of the record.

    Tables show `key_data` and `value_data` instead, the parts without type and version.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    type: str
    key_data: JsonText | None
    value_data: JsonText | None


def row_of(record: Shown, key_form: str, value_form: str, *, for_people: bool) -> dict[str, Any]:
    """Return a record as a row. A decoded record also has `type`."""
    headers = [{"key": name, "value": show(value, "text")} for name, value in record.headers]
    row: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": utc_time(record.timestamp) if for_people else record.timestamp,
    }
    if isinstance(record, DecodedRecord):
        row["type"] = record.type
        row["key"] = record.key_data if for_people else _json_text(record.key)
        row["value"] = record.value_data if for_people else _json_text(record.value)
    else:
        row["key"] = show(record.key, key_form)
        row["value"] = show(record.value, value_form)
        if isinstance(record, ShareRecord):
            row["deliveryCount"] = record.delivery_count
    row["headers"] = _headers_text(headers) if for_people else headers
    return row


def _json_text(data: bytes | None) -> JsonText | None:
    return None if data is None else JsonText(data.decode("utf-8", "surrogatepass"))


def _headers_text(headers: list[dict[str, Any]]) -> str | None:
    return ", ".join(f"{each['key']}={each['value']}" for each in headers) or None
