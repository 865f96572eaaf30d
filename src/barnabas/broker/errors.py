"""The response to a request that failed as a whole: the error at the top level, or on each requested item.

A list of the response corresponds to a list of the request if both have the same key fields.
"""

from __future__ import annotations

from typing import Any

from barnabas.steps import Slices, at_once
from barnabas.wire import Api, ApiKey, ErrorCode, Message, Struct, message_class
from barnabas.wire.schema import MessageSchema, StructSchema

# These list the requested items even if the error is at the top level.
_ALSO_ON_ITEMS = frozenset(
    {ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS}
)

# Before this version, while topics have names, Fetch has its error at the top level and on every partition.
_FIRST_FETCH_WITH_TOPIC_IDS = 13

# Without permission, their message is that of the code, and not left out.
_GENERIC_MESSAGE = frozenset(
    {
        *(ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER),
        *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
        *(ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    }
)

# Their errors always have a message, if only that of the code.
_ALWAYS_MESSAGE = frozenset({ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS})

# Their errors have no message.
_NO_MESSAGE = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})

# Values of a failed item's fields that are no keys, where the default would mean something else.
_UNKNOWN = {"high_watermark": -1, "low_watermark": -1, "base_offset": -1}
_NO_NAMES = frozenset({"timestamp", "leader_epoch", *_UNKNOWN, "log_start_offset"})


def error_response(api: Api, version: int, request: Message, code: ErrorCode, message: str | None = None) -> Message:
    return at_once(error_response_in_slices(api, version, request, code, message))


def error_response_in_slices(
    api: Api, version: int, request: Message, code: ErrorCode, message: str | None
) -> Slices[Message]:
    """Do the same as `error_response`, with pauses."""
    response = message_class(api.response)()
    schema = response.schema()
    is_generic = schema.key in _GENERIC_MESSAGE and code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    shown = code.message if is_generic else shown_message(code, message)
    if schema.key in _ALWAYS_MESSAGE and shown is None:
        shown = code.message
    if schema.key in _NO_MESSAGE:
        shown = None
    is_marked = _mark(response, schema.root, version, code, shown)
    if schema.key == ApiKey.FETCH:
        response.session_id = request.session_id  # type: ignore[attr-defined]
    has_items = schema.key in _ALSO_ON_ITEMS or (schema.key == ApiKey.FETCH and version < _FIRST_FETCH_WITH_TOPIC_IDS)
    if not is_marked or has_items:
        yield from _mark_items(schema, schema.root, response, request, version, code, shown)
    return response


def _mark(target: Struct, struct: StructSchema, version: int, code: ErrorCode, shown: str | None) -> bool:
    """Set the error in the struct. Return False if it has no field for one."""
    fields = {field.name: field for field in struct.fields if version in field.versions}
    name = next((each for each in ("error_code", "partition_error_code") if each in fields), None)
    if name is None:
        return False
    setattr(target, name, int(code))
    if "error_message" in fields and (shown is not None or version in fields["error_message"].nullable):
        target.error_message = shown  # type: ignore[attr-defined]
    return True


def shown_message(code: ErrorCode, message: str | None) -> str | None:
    """Return the message to send, or None if it only repeats the code or describes an internal error."""
    return None if code == ErrorCode.UNKNOWN_SERVER_ERROR or message == code.message else message


def _mark_items(
    schema: MessageSchema,
    struct: StructSchema,
    target: Struct,
    source: Struct,
    version: int,
    code: ErrorCode,
    shown: str | None,
) -> Slices[None]:
    """Fill the response's lists from those of the request, with the error on the innermost items."""
    lists = [f for f in struct.fields if f.is_array and f.is_struct and version in f.versions]
    if not lists:
        return
    field = lists[0]
    element = schema.structs[field.type]
    asked: list[Any] = next((v for v in _values(source) if isinstance(v, list) and v), [])
    items = []
    for wanted in asked:
        yield
        item: Struct = getattr(message_class(schema.name), field.type)()
        _copy_keys(item, element, wanted)
        if not _mark(item, element, version, code, shown) and isinstance(wanted, Struct):
            yield from _mark_items(schema, element, item, wanted, version, code, shown)
        items.append(item)
    setattr(target, field.name, items)


def _values(source: Struct) -> list[Any]:
    return [getattr(source, name) for name in type(source).__slots__]


def _copy_keys(item: Struct, element: StructSchema, wanted: Any) -> None:
    keys = [field.name for field in element.fields if field.is_key]
    names = keys or [field.name for field in element.fields if not field.is_array and field.name not in _NO_NAMES]
    for field in element.fields:
        if field.name in _UNKNOWN:
            setattr(item, field.name, _UNKNOWN[field.name])
        elif field.type == "records":
            setattr(item, field.name, b"")
    if not isinstance(wanted, Struct):  # a list of plain names or numbers: these are the keys
        kind = "string" if isinstance(wanted, str) else "int32"
        scalar = next(f.name for f in element.fields if f.type == kind and f.name != "error_message")
        setattr(item, scalar, wanted)
        return
    for name in type(wanted).__slots__:
        value = getattr(wanted, name)
        if name == "partition" and name not in names:
            name = "partition_index"  # noqa: PLW2901  (the field's name in the response)
        if name in names and not isinstance(value, list | Struct):
            setattr(item, name, value)
