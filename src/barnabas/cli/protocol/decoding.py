"""Decoding of protocol bytes to documents: the message, its header and body as JSON, and advice if decoding fails.

Its one rule: any bytes result in a document, or in a DecodingError with the problem and advice. The JSON is that of `wire`.
Unknown tagged fields, names of error codes and decoded batches are added to it.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

from barnabas import wire
from barnabas.similar_names import did_you_mean
from barnabas.wire.apis import RECORD_NAMES
from barnabas.wire.schema import StructSchema

Document = dict[str, Any]

_INT32 = struct.Struct(">i")
_KEY_AND_VERSION = struct.Struct(">hh")


class DecodingError(ValueError):
    """The problem, its place and advice, in one line."""


# --- names -----------------------------------------------------------------------------------------------------------


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def _find(name: str, known: list[str], what: str) -> str:
    folded = {_fold(k): k for k in known}
    found = folded.get(_fold(name))
    if found is not None:
        return found
    raise DecodingError(f"there is no {what} {name!r}" + (did_you_mean(name, known) or f" among {len(known)}"))


def find_message(name: str) -> str:
    """Find the name of a message or record; case, dashes and underscores do not matter. Raises DecodingError."""
    key = int(name) if name.isdecimal() else None
    for number, api in wire.APIS.items():
        if number == key or _fold(api.name) == _fold(name):
            raise DecodingError(f"{name} is an API: use {api.request} or {api.response}")
    return _find(name, wire.message_names(), "message")


def find_api(name: str) -> wire.Api:
    """Find an API by its key, its name, or the name of its request or response. Raises DecodingError."""
    if name.isdecimal():
        api = wire.APIS.get(int(name))
        if api is None:
            raise DecodingError(f"there is no API with key {name}")
        return api
    apis = {api.name: api for api in wire.APIS.values()}
    for suffix in ("request", "response"):
        name = name[: -len(suffix)] if _fold(name).endswith(suffix) and _fold(name) != suffix else name
    return apis[_find(name, list(apis), "API")]


def find_record(name: str) -> str:
    """Find a group of records, whose frames have the type of the record, or a record by its name."""
    return _find(name, [*RECORD_NAMES, *wire.message_names()], "record")


def versions_of(name: str) -> range:
    versions = wire.message_class(name).schema().versions
    return range(versions.first, versions.last + 1)


# --- messages --------------------------------------------------------------------------------------------------------


def decode_message(name: str, version: int, data: bytes, open_records: bool = False) -> Document:
    """Decode a message without a header. Raises DecodingError."""
    try:
        message = wire.decode(name, version, data)
    except wire.UnsupportedVersionError as error:
        raise DecodingError(str(error)) from error
    except wire.MalformedError as error:
        raise DecodingError(f"{error}; {_advice(name, version, data)}") from error
    return _document(name, version, None, message, open_records)


def decode_requests(data: bytes, framed: bool | None = None, open_records: bool = False) -> list[Document]:
    """Decode requests with their headers, which have the API and version. Raises DecodingError."""
    return _each_frame(data, framed, lambda frame: _decode_request(frame, open_records))


def decode_responses(
    api: wire.Api, version: int, data: bytes, framed: bool | None = None, open_records: bool = False
) -> list[Document]:
    """Decode responses with their headers. The caller must know API and version. Raises DecodingError."""
    return _each_frame(data, framed, lambda frame: _decode_response(api, version, frame, open_records))


def decode_record(name: str, data: bytes) -> Document:
    """Decode a record in its frame. `name` is a record, or a group of which the frame has the type. Raises DecodingError."""
    try:
        record, version = wire.decode_record(data, name)
    except (wire.MalformedError, wire.UnsupportedVersionError) as error:
        others = ", ".join(group for group in RECORD_NAMES if group != name)
        advice = f"does it belong to another group ({others})?" if name in RECORD_NAMES else "is it another record?"
        raise DecodingError(f"{error}; {advice} Without a frame: barnabas decode NAME VERSION HEX") from error
    return _document(type(record).__name__, version, None, record, False)


def _decode_request(data: bytes, open_records: bool) -> Document:
    if len(data) < _KEY_AND_VERSION.size:
        raise DecodingError(f"{len(data)} bytes are too few for a request with its header")
    key, version = _KEY_AND_VERSION.unpack_from(data)
    api = wire.APIS.get(key)
    if api is None:
        raise DecodingError(
            f"there is no API with key {key}, the value of the first two bytes; is the header missing? "
            "If so, name the message: barnabas decode MESSAGE VERSION HEX"
        )
    if version not in api.versions:
        raise DecodingError(f"the header has {api.name} version {version}, which is not in {api.versions}")
    return _decode_after_header(
        "RequestHeader", api.request_header_version(version), api.request, version, data, open_records
    )


def _decode_response(api: wire.Api, version: int, data: bytes, open_records: bool) -> Document:
    if version not in api.versions:
        raise DecodingError(f"{api.name} has versions {api.versions}, not {version}")
    header_version = api.response_header_version(version)
    return _decode_after_header("ResponseHeader", header_version, api.response, version, data, open_records)


def _decode_after_header(
    header_name: str, header_version: int, name: str, version: int, data: bytes, open_records: bool
) -> Document:
    try:
        header, position = wire.decode_from(header_name, header_version, data, 0)
    except wire.MalformedError as error:
        raise DecodingError(f"{error}, in the header before {name} v{version}") from error
    try:
        message = wire.decode(name, version, data[position:])
    except wire.MalformedError as error:
        advice = _advice(name, version, data[position:])
        raise DecodingError(f"after a header of {position} bytes: {error}; {advice}") from error
    return _document(name, version, _content(header, header_version, False), message, open_records)


# --- frames ----------------------------------------------------------------------------------------------------------


def split_frames(data: bytes) -> list[bytes]:
    """Split data into frames, each preceded by its size in four bytes. Raises DecodingError if bytes are left."""
    frames: list[bytes] = []
    position = 0
    while position < len(data):
        left = len(data) - position - _INT32.size
        size = _INT32.unpack_from(data, position)[0] if left >= 0 else 0
        if size < 0 or size > left:
            raise DecodingError(
                f"frame {len(frames)} at byte {position} has a size of {size} bytes, and {max(left, 0)} are left"
                if left >= 0
                else f"{left + _INT32.size} bytes after frame {len(frames) - 1} are not a size"
            )
        position += _INT32.size + size
        frames.append(data[position - size : position])
    return frames


def _each_frame(data: bytes, framed: bool | None, decode: Callable[[bytes], Document]) -> list[Document]:
    if framed:
        if not data:
            raise DecodingError("there are no bytes, and so no frames")
        return [decode(frame) for frame in split_frames(data)]
    if framed is None:
        try:
            return [decode(frame) for frame in split_frames(data)] or [decode(data)]
        except DecodingError as error:
            try:
                return [decode(data)]  # the apparent sizes were a correlation id and other values
            except DecodingError as unframed_error:
                raise (error if _is_framed(data) else unframed_error) from None
    return [decode(data)]


def _is_framed(data: bytes) -> bool:
    try:
        return bool(split_frames(data))
    except DecodingError:
        return False


# --- documents -------------------------------------------------------------------------------------------------------


def message_document(message: wire.Message, version: int, open_records: bool = False) -> Document:
    """Return the document of a message that is already decoded."""
    return _document(type(message).__name__, version, None, message, open_records)


def _document(name: str, version: int, header: Document | None, message: wire.Message, open_records: bool) -> Document:
    body = _content(message, version, open_records)
    document: Document = {"message": name, "version": version}
    if header is not None:
        document["header"] = header
    document["body"] = body
    errors = dict(_error_names(body, "body"))
    if errors:
        document["errors"] = errors
    return document


def _content(message: wire.Message, version: int, open_records: bool) -> Document:
    schema = message.schema()
    content = message.to_json(version)
    _add_what_json_lacks(schema.structs, schema.root, message, content, open_records)
    return content


def _add_what_json_lacks(
    structs: dict[str, StructSchema], schema: StructSchema, value: wire.Struct, content: Document, open_records: bool
) -> None:
    for field in schema.fields:
        name, member = field.json_name, getattr(value, field.name)
        if name not in content or member is None:
            continue
        if field.is_struct:
            pairs = zip(member, content[name], strict=True) if field.is_array else [(member, content[name])]
            for inner, inner_content in pairs:
                _add_what_json_lacks(structs, structs[field.type], inner, inner_content, open_records)
        elif field.type == "records" and open_records:
            from barnabas.cli.protocol.batch_documents import batch_documents  # imports C libraries

            content[name] = batch_documents(member)
        elif field.type == "float64" and not math.isfinite(member):
            content[name] = str(member)  # JSON has no NaN and infinity
    if value.unknown_tagged_fields:
        content["unknownTaggedFields"] = {
            str(tag): base64.b64encode(data).decode() for tag, data in value.unknown_tagged_fields.items()
        }


def _error_names(content: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(content, list):
        for index, item in enumerate(content):
            yield from _error_names(item, f"{path}[{index}]")
    elif isinstance(content, dict):
        for name, value in content.items():
            if not name.lower().endswith("errorcode"):
                yield from _error_names(value, f"{path}.{name}")
            elif value != 0:
                known = value in wire.ErrorCode.__members__.values()
                yield f"{path}.{name}", wire.ErrorCode(value).name if known else f"{value} is not an error code"


# --- advice ----------------------------------------------------------------------------------------------------------


def _decodes(name: str, version: int, data: bytes) -> bool:
    try:
        wire.decode(name, version, data)
    except wire.MalformedError:
        return False
    return True


def _has_header(name: str, version: int, data: bytes) -> bool:
    api = wire.APIS.get(wire.message_class(name).schema().key or 0)
    if api is None or name not in (api.request, api.response):
        return False
    try:
        documents = decode_requests(data) if name == api.request else decode_responses(api, version, data)
    except DecodingError:
        return False
    return bool(documents[0]["message"] == name)


def _advice(name: str, version: int, data: bytes) -> str:
    if not data:
        return "there are no bytes"
    others = [str(v) for v in versions_of(name) if v != version and _decodes(name, v, data)]
    if others:
        return f"as version {', '.join(others)} it can be decoded: try that"
    if _has_header(name, version, data):
        return f"it begins with a header: try --{'request' if name.endswith('Request') else 'response'}"
    return "is it another message or version, does it begin with a header, or are bytes missing?"
