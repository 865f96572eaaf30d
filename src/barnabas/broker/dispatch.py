"""Routes a frame to its API's handler, and encodes the response into pieces.

The files of broker/api are the table of APIs: a file has the name of its API, and its `handle(context, request)` is the
handler. It is imported at the first request. Requests that a listener does not serve are refused here. An unexpected
exception of a handler becomes UNKNOWN_SERVER_ERROR here and nowhere else.

A handler whose work or response grows with the request or with the cluster is a generator that yields every few rows. It
runs in slices, and so does the encoding of its response, between the requests of other clients. It may return an
awaitable of the response. A large frame is decoded in slices too.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from importlib import import_module
from inspect import isawaitable, iscoroutine
from types import GeneratorType
from typing import Any, NamedTuple, NoReturn, cast

from barnabas.broker import api as handlers
from barnabas.broker.context import Context, Listener, Peer, Services
from barnabas.broker.errors import error_response
from barnabas.broker.served import WRITING_KEYS, served_apis, served_versions
from barnabas.slices import Slices, begin, in_slices
from barnabas.wire import APIS, Api, ApiKey, ErrorCode, KafkaError, MalformedError, Message, message_class
from barnabas.wire.codec import Reader, SlicedReader, reader, sliced_reader, takes_views
from barnabas.wire.frame import Frame, encode_response, encode_response_in_slices
from barnabas.wire.messages.header import RequestHeader

_log = logging.getLogger(__name__)

Response = Message | bytes | None
Handler = Callable[[Context, Any], Response | Awaitable[Response] | Slices[Response | Awaitable[Response]]]
Pieces = list[bytes]
Answer = Pieces | None

SLICED_BYTES = 1 << 15  # a larger frame is decoded in slices

_KEY_AND_VERSION = struct.Struct(">hh")
_UNREADABLE = (MalformedError, struct.error, IndexError, UnicodeDecodeError)


class Refused(Exception):  # noqa: N818  (it closes a connection; it is not a fault of the node)
    """Raised for a frame that gets no response: the connection is closed, and the text is logged.

    A handler may raise it too.
    """


class Route(NamedTuple):
    """Decoders and handler of one API in one version, created at the first such request."""

    api: Api
    version: int
    read_header: Reader
    read_request: Reader
    handle: Handler
    takes_views: bool = False  # the request has records, which stay in the frame's buffer
    writes: bool = False  # a read-only node refuses it

    @property
    def read_sliced(self) -> SlicedReader:
        return sliced_reader(message_class(self.api.request), self.version)


def handler_of(key: int) -> Handler:
    module = import_module(f"{handlers.__name__}.{ApiKey(key).name.lower()}")
    found: Handler = module.handle
    return found


def dispatch(frame: Frame, services: Services, peer: Peer) -> Answer | Awaitable[Answer]:
    """Return the pieces of the response, or an awaitable of them; None if the request has no response.

    Raises Refused if the connection has to be closed.
    """
    route = _ROUTES.get((peer.listener.is_controller, bytes(frame[:4]))) or _find_route(peer.listener, frame)
    api, version, read_header, read_request, handle, reads_view, writes = route
    if type(frame) is memoryview and not reads_view:
        frame = bytes(frame)
    if len(frame) > SLICED_BYTES:
        return _in_slices(_decoded_in_slices(route, frame, services, peer))
    try:
        header, position = read_header(frame, 0)
        request, _ = read_request(frame, position)
    except _UNREADABLE as error:
        raise _undecodable(route, error) from error
    context = Context(services, peer, version, header.correlation_id, header.client_id)
    try:
        if writes and services.refusal is not None:
            _refuse(request, services.refusal)
        response = handle(context, request)
        if response is None or isinstance(response, Message | bytes):
            return _answer(api, version, context, response)
    except Refused:
        raise
    except Exception as error:
        return _failed(api, version, context, request, error)
    if isinstance(response, GeneratorType):
        return _in_slices(_answered_in_slices(route, context, request, response))
    return _later(api, version, context, request, cast(Awaitable[Response], response))


def _decoded_in_slices(
    route: Route, frame: Frame, services: Services, peer: Peer
) -> Slices[Answer | Awaitable[Answer]]:
    """Decode a large frame, handle its request and encode the response, or return an awaitable of that response."""
    try:
        header, position = route.read_header(frame, 0)
        request, _ = yield from route.read_sliced(frame, position)
    except _UNREADABLE as error:
        raise _undecodable(route, error) from error
    context = Context(services, peer, route.version, header.correlation_id, header.client_id)
    try:
        if route.writes and services.refusal is not None:
            _refuse(request, services.refusal)
        response = route.handle(context, request)
    except Refused:
        raise
    except Exception as error:
        return _failed(route.api, route.version, context, request, error)
    return (yield from _answered_in_slices(route, context, request, response))


def _answered_in_slices(
    route: Route, context: Context, request: Message, response: Any
) -> Slices[Answer | Awaitable[Answer]]:
    """Finish a handler's work and encode its response, or return an awaitable of that."""
    api, version = route.api, route.version
    try:
        answer: Any = (yield from response) if isinstance(response, GeneratorType) else response
        if answer is None:
            return None
        if isawaitable(answer):
            return _later(api, version, context, request, answer)
        return (yield from encode_response_in_slices(api, version, context.correlation_id, answer))
    except Refused:
        raise
    except Exception as error:
        return _failed(api, version, context, request, error)


def _in_slices(work: Slices[Answer | Awaitable[Answer]]) -> Answer | Awaitable[Answer]:
    """Return the answer, or an awaitable of it if the work needs more than one turn or waits for something."""
    begun = begin(work)
    return _to_its_end(begun) if isinstance(begun, asyncio.Task) else begun


async def _to_its_end(work: asyncio.Task[Answer | Awaitable[Answer]]) -> Answer:
    """Wait for the work and for its answer.

    The work is done even if the client disconnects meanwhile, as in Kafka: a producer with acks=0 does not wait for it.
    """
    try:
        answer = await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(_drop)
        raise
    return await answer if isawaitable(answer) else answer


def _drop(work: asyncio.Task[Any]) -> None:
    """Drop the answer that nobody waits for, or the error."""
    if not work.cancelled() and work.exception() is None and iscoroutine(work.result()):
        work.result().close()


_ROUTES: dict[tuple[bool, bytes], Route] = {}


def _find_route(listener: Listener, frame: Frame) -> Route:
    if len(frame) < 4:
        raise Refused(f"a frame of {len(frame)} bytes is too short for a request header")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    api = served_apis(listener.kind).get(key)
    if api is None:
        name = f"{APIS[key].name} ({key})" if key in APIS else f"API key {key}"
        raise Refused(f"{name} is not served on the {listener.kind} listener {listener.name}")
    read_header = reader(RequestHeader, api.request_header_version(version))
    if version not in served_versions(key):
        if key != ApiKey.API_VERSIONS:
            raise Refused(f"{api.name} ({key}) is served in versions {served_versions(key)}, not {version}")
        # A client must be able to learn the versions: an unknown version is answered in version 0.
        return Route(api, 0, read_header, lambda data, position: (None, position), handler_of(key))
    request = message_class(api.request)
    route = _ROUTES[listener.is_controller, bytes(frame[:4])] = Route(
        api,
        version,
        read_header,
        reader(request, version),
        handler_of(key),
        takes_views=takes_views(request),
        writes=key in WRITING_KEYS,
    )
    return route


def _undecodable(route: Route, error: Exception) -> Refused:
    return Refused(f"{route.api.request} v{route.version} cannot be decoded: {error}")


def _refuse(request: Message, refusal: KafkaError) -> NoReturn:
    if getattr(request, "acks", None) == 0:
        raise Refused(f"{refusal.message}; a producer with acks=0 gets no error response")
    raise KafkaError(refusal.code, refusal.message)


def _answer(api: Api, version: int, context: Context, response: Any) -> Pieces | None:
    return None if response is None else encode_response(api, version, context.correlation_id, response)


async def _later(
    api: Api, version: int, context: Context, request: Message, response: Awaitable[Response]
) -> Pieces | None:
    try:
        answer = await response
        if answer is None:
            return None
        return await in_slices(encode_response_in_slices(api, version, context.correlation_id, answer))
    except Refused:
        raise
    except Exception as error:
        return _failed(api, version, context, request, error)


def _failed(api: Api, version: int, context: Context, request: Message, error: Exception) -> Pieces | None:
    if isinstance(error, KafkaError):
        code, message = error.code, error.message
    else:
        _log.error("%s v%d of client %r failed", api.request, version, context.client_id, exc_info=error)
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
    return _answer(api, version, context, error_response(api, version, request, code, message))
