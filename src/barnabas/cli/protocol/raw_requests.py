"""Requests from JSON: the body, the version and the destination. Pure.

Its one rule: the JSON is that of `barnabas decode` and of Kafka's own converters. Names are in camel case, `bytes` and
`records` are base64, and uuids have 22 characters. Missing fields have their defaults. A whole document of `barnabas decode`
is accepted as well.
"""

from __future__ import annotations

import json
from typing import Any

from barnabas import wire
from barnabas.client.routing import CoordinatorType, Destination, any_broker, controller, coordinator, leader, node
from barnabas.wire.schema import Versions

FORMS = "any, controller, node:ID, leader:TOPIC:PARTITION, group:ID, transaction:ID or share:KEY"


class RawError(ValueError):
    """A problem with a request, in one line."""


def parse_body(text: str) -> tuple[dict[str, Any], int | None]:
    """Parse the fields of a request, and its version if the text is a document that has one. Raises RawError."""
    try:
        content = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise RawError(f"the request is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise RawError(f"a request is a JSON object, and this is a {type(content).__name__}")
    if isinstance(content.get("message"), str) and isinstance(content.get("body"), dict):
        version = content.get("version")
        return content["body"], version if isinstance(version, int) else None
    return content, None


def parse_destination(text: str) -> Destination:
    """Parse the destination of a request. Raises RawError.

    >>> parse_destination("leader:orders:3")
    Leader(topic='orders', partition=3)
    """
    kind, _, rest = text.partition(":")
    coordinators = {"group": CoordinatorType.GROUP, "transaction": CoordinatorType.TRANSACTION}
    if text == "any":
        return any_broker()
    if text == "controller":
        return controller()
    if kind == "node" and rest.isdecimal():
        return node(int(rest))
    if kind in coordinators and rest:
        return coordinator(rest, coordinators[kind])
    if kind == "share" and rest:
        return coordinator(rest, CoordinatorType.SHARE)
    topic, _, partition = rest.rpartition(":")
    if kind == "leader" and topic and partition.isdecimal():
        return leader(topic, int(partition))
    raise RawError(f"{text!r} is not one of {FORMS}")


def best_request(api: wire.Api, content: dict[str, Any], common: Versions) -> tuple[wire.Message, int]:
    """Build the request in the newest version that both sides support and that has all its fields."""
    refused: RawError | None = None
    for version in range(common.last, common.first - 1, -1):
        try:
            return request_in(api, content, version), version
        except RawError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def request_in(api: wire.Api, content: dict[str, Any], version: int) -> wire.Message:
    """Build the request in this version, and check its fields."""
    try:
        request = wire.message_class(api.request).from_json(content, version)
        wire.encode(request, version)
    except (wire.MalformedError, wire.EncodeError, wire.UnsupportedVersionError) as error:
        raise RawError(str(error)) from None
    return request


def example(api: wire.Api, version: int) -> dict[str, Any]:
    """Return a request with all fields at their defaults, and one member in each list."""
    cls = wire.message_class(api.request)
    return _fields(cls, cls.schema().root, version)


def _fields(cls: type[wire.Message], struct: Any, version: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for field in struct.fields:
        if version not in field.versions:
            continue
        inner: Any
        if field.is_struct:
            inner = _fields(cls, cls.schema().structs[field.type], version)
        else:
            inner = _SAMPLES.get(field.type, 0)
            if not field.is_array and isinstance(field.default, str | int | float | bool):
                inner = field.default
        content[field.json_name] = [inner] if field.is_array else inner
    return content


_SAMPLES: dict[str, Any] = {
    "string": "",
    "bool": False,
    "float64": 0.0,
    "bytes": "",
    "records": None,
    "uuid": str(wire.ZERO_UUID),
}
