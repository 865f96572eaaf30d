"""Routes a frame to its API's handler, and encodes the response into pieces.

The files of broker/api are the table of APIs: a file has the name of its API, and its `handle(context, request)` is the
handler. It is imported at the first request. Requests that a listener does not serve are refused here. An unexpected
exception of a handler becomes UNKNOWN_SERVER_ERROR here and nowhere else. Requests, their errors and their latency are
counted here.

A handler whose work or response grows with the request or with the cluster is a generator that yields every few rows. It
runs in slices, and so does the encoding of its response, between the requests of other clients. It may return an
awaitable of the response. A large frame is decoded in slices too.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Generator
from importlib import import_module
from inspect import isawaitable, iscoroutine
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from barnabas.broker import api as handlers
from barnabas.broker.context import Context, Listener, Peer, Services
from barnabas.broker.counters import SMALL_BYTES, RequestCounters, has_error
from barnabas.broker.delegation_tokens import is_allowed
from barnabas.broker.errors import error_response_in_slices
from barnabas.broker.forwarding import Forwarding
from barnabas.broker.request_time import RequestTime
from barnabas.broker.served import (
    FORWARDABLE_KEYS,
    PARTLY_FORWARDED_KEYS,
    TOKEN_KEYS,
    WRITING_KEYS,
    served_apis,
    served_versions,
)
from barnabas.broker.throttling import throttled, time_of
from barnabas.slices import Slices, begin, in_slices
from barnabas.steps import at_once
from barnabas.wire import APIS, Api, ApiKey, ErrorCode, KafkaError, MalformedError, Message, message_class
from barnabas.wire.codec import Reader, SlicedReader, reader, sliced_reader, takes_views
from barnabas.wire.errors import TooLongError
from barnabas.wire.frame import Frame, encode_response, encode_response_in_slices, frame_size
from barnabas.wire.messages.header import RequestHeader

if TYPE_CHECKING:
    from barnabas.broker.faults.faults import NodeFaults
    from barnabas.broker.faults.rules import Rule

_log = logging.getLogger(__name__)

Body = Message | bytes  # made once: a union in an expression is built each time
Response = Body | None
Handler = Callable[[Context, Any], Response | Awaitable[Response] | Slices[Response | Awaitable[Response]]]
Pieces = list[bytes]
Answer = Pieces | None

SLICED_BYTES = 1 << 15  # a larger frame is decoded in slices

_SIZE_BYTES = 4
_KEY_AND_VERSION = struct.Struct(">hh")
_UNREADABLE = (MalformedError, struct.error, IndexError, UnicodeDecodeError)


class Refused(Exception):  # noqa: N818  (it closes a connection; it is not a fault of the node)
    """Raised for a frame that gets no response: the connection is closed, and the text is logged.

    A handler may raise it too. The `answer` of a failed login is sent before the connection is closed.
    """

    def __init__(self, why: str, answer: Answer = None) -> None:
        super().__init__(why)
        self.answer = answer


class Dropped(Refused):
    """Raised if a fault rule drops a connection. Nothing is wrong with the frame."""


class Route(NamedTuple):
    """Decoders, handler and counters of one API in one version, created at the node's first such request."""

    api: Api
    version: int
    read_header: Reader
    read_request: Reader
    handle: Handler
    counters: RequestCounters
    takes_views: bool = False  # the request has records, which stay in the frame's buffer
    writes: bool = False  # a read-only node refuses it
    is_forwarded: bool = False  # the active controller carries it out, on this node or another
    faults: NodeFaults | None = None  # None while there are none, so that nothing asks for them

    @property
    def read_sliced(self) -> SlicedReader:
        return sliced_reader(message_class(self.api.request), self.version)


class _Waiting(NamedTuple):
    """A response that a handler waits for; the arguments of `_later`."""

    route: Route
    context: Context
    request: Message
    response: Awaitable[Response]


def handler_of(key: int) -> Handler:
    module = import_module(f"{handlers.__name__}.{ApiKey(key).name.lower()}")
    found: Handler = module.handle
    return found


def dispatch(frame: Frame, services: Services, peer: Peer) -> Answer | Awaitable[Answer]:
    """Return the pieces of the response, or an awaitable of them; None if the request has no response.

    Raises Refused if the connection has to be closed.
    """
    time = time_of(services, peer) if services.quotas.request.bounds.is_any else None
    routes = services.routes
    route = routes.get((peer.listener.is_controller, bytes(frame[:4]))) or _find_route(services, peer.listener, frame)
    _, version, read_header, read_request, _, counters, *_ = route
    began_ns = services.monotonic_ns()
    counters.requests += 1
    counters.request_bytes += len(frame)
    size = len(frame)
    if type(frame) is memoryview and not route.takes_views:
        frame = bytes(frame)
    if size > SLICED_BYTES:
        return _in_slices(_decoded_in_slices(route, frame, services, peer, began_ns, time), time)
    try:
        header, position = read_header(frame, 0)
        request, _ = read_request(frame, position)
    except _UNREADABLE as error:
        raise _undecodable(route, error) from error
    name = route.api.name
    context = Context(services, peer, version, header.correlation_id, header.client_id, began_ns, size, time, name)
    if route.is_forwarded:
        context.frame = bytes(frame)
    try:
        response = _handle(route, context, request)
        if response is None or isinstance(response, Body):
            return _answer(route, context, request, response)
    except Refused:
        at_once(_audited(context, request, None))
        raise
    except Exception as error:
        return _in_slices(_failed(route, context, request, error), time)
    if isinstance(response, GeneratorType):
        return _in_slices(_answered_in_slices(route, context, request, response), time)
    return _later(route, context, request, cast(Awaitable[Response], response))


async def answer_enclosed(frame: bytes, services: Services, peer: Peer) -> bytes:
    """Return the response, with its header, to a request that a broker has forwarded.

    Raises Refused, and KafkaError with NOT_CONTROLLER if the response says that this node is not the active controller.
    """
    route = _find_route(services, peer.listener, frame)
    try:
        header, position = route.read_header(frame, 0)
        request, _ = await in_slices(route.read_sliced(frame, position))
    except _UNREADABLE as error:
        raise _undecodable(route, error) from error
    context = Context(services, peer, route.version, header.correlation_id, header.client_id, services.monotonic_ns())
    context.api = route.api.name
    route.counters.requests += 1
    route.counters.request_bytes += len(frame)
    try:
        response = await _response(route, context, request)
        if isinstance(response, Message) and await in_slices(has_error(response, ErrorCode.NOT_CONTROLLER)):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        pieces = await in_slices(_encoded_in_slices(route, context, request, response))
    except Refused:
        raise
    except Exception as error:
        if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
            raise
        pieces = await in_slices(_failed(route, context, request, error))
    return b"".join(pieces or ())[_SIZE_BYTES:]


def error_answer(frame: Frame, services: Services, peer: Peer, error: KafkaError) -> Answer:
    """Return the response that reports an error, without calling the handler. Raises Refused like `dispatch`."""
    route = _find_route(services, peer.listener, frame)
    try:
        header, position = route.read_header(bytes(frame), 0)
        request, _ = route.read_request(bytes(frame), position)
    except _UNREADABLE as unreadable:
        raise _undecodable(route, unreadable) from unreadable
    context = Context(services, peer, route.version, header.correlation_id, header.client_id, services.monotonic_ns())
    context.api = route.api.name
    return at_once(_failed(route, context, request, error))


def _decoded_in_slices(
    route: Route, frame: Frame, services: Services, peer: Peer, began_ns: int, time: RequestTime | None
) -> Slices[Answer | _Waiting]:
    """Decode a large frame, handle its request and encode the response, or return the response to wait for."""
    try:
        header, position = route.read_header(frame, 0)
        request, _ = yield from route.read_sliced(frame, position)
    except _UNREADABLE as error:
        raise _undecodable(route, error) from error
    size, name = len(frame), route.api.name
    context = Context(
        services, peer, route.version, header.correlation_id, header.client_id, began_ns, size, time, name
    )
    context.frame = bytes(frame) if route.is_forwarded else b""
    return (yield from _answered_in_slices(route, context, request, _handle_in_slices(route, context, request)))


def _handle_in_slices(route: Route, context: Context, request: Message) -> Slices[Response | Awaitable[Response]]:
    response: Response | Awaitable[Response] = _handle(route, context, request)
    if isinstance(response, GeneratorType):
        response = yield from response
    return response


def _handle(route: Route, context: Context, request: Any) -> Any:
    """Carry out the request, unless a fault rule hits it."""
    if route.faults is not None:
        fault = route.faults.hit(route.api.name, context, request)
        if fault is not None:
            return _with_fault(fault, route, context, request)
    return _carry_out(route, context, request)


async def _with_fault(fault: Rule, route: Route, context: Context, request: Any) -> Response:
    """Delay the request, fail it or drop its connection, before it is carried out or afterwards."""
    response = await _waited(_carry_out(route, context, request)) if fault.after else None
    await asyncio.sleep(fault.delay_ms / 1000)
    if fault.drop:
        raise Dropped(f"a fault rule drops the connection of {route.api.name}")
    if fault.code is not None:
        _refuse(request, KafkaError(fault.code, "a fault rule"))
    return response if fault.after else await _waited(_carry_out(route, context, request))


def _carry_out(route: Route, context: Context, request: Any) -> Any:
    """Call the handler, unless the node is read-only and the request would change something."""
    if route.writes and context.services.refusal is not None:
        _refuse(request, context.services.refusal)
    if route.is_forwarded and (forwarding := context.services.forwarding) is not None:
        return _by_active_controller(route, context, request, forwarding)
    return route.handle(context, request)


async def _by_active_controller(route: Route, context: Context, request: Any, forwarding: Forwarding) -> Response:
    """Call the handler if this node is the active controller. Forward the request otherwise, and if it ceases to be."""
    if not forwarding.is_needed:
        try:
            response = await _response(route, context, request)
            if not isinstance(response, Message) or not await in_slices(has_error(response, ErrorCode.NOT_CONTROLLER)):
                return response
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
    if request.schema().key in TOKEN_KEYS and not is_allowed(context):
        return await _response(route, context, request)  # it refuses, which a controller of Apache Kafka would not do
    context.api = ""  # the active controller writes the line of the audit log
    return await forwarding.forward(route.api, context, context.frame)


async def _response(route: Route, context: Context, request: Any) -> Response:
    return await _waited(route.handle(context, request))


async def _waited(response: Any) -> Response:
    """Return the response of a handler, whatever kind of function it is."""
    if isinstance(response, GeneratorType):
        response = await in_slices(response)
    return await response if isawaitable(response) else cast(Response, response)


def _answered_in_slices(
    route: Route, context: Context, request: Message, handler: Slices[Response | Awaitable[Response]]
) -> Slices[Answer | _Waiting]:
    """Finish a handler's work and encode its response, or return the response to wait for."""
    try:
        answer = yield from handler
        if answer is None or isinstance(answer, Body):
            return (yield from _encoded_in_slices(route, context, request, answer))
        return _Waiting(route, context, request, answer)
    except Refused:
        yield from _audited(context, request, None)
        raise
    except Exception as error:
        return (yield from _failed(route, context, request, error))


def _in_slices(work: Slices[Answer | _Waiting], time: RequestTime | None) -> Answer | Awaitable[Answer]:
    """Return the answer, or an awaitable of it if the work needs more than one turn or waits for something."""
    if time is None:
        begun = begin(work)
    else:
        begun = begin(time.of_steps(work))
        time.pause()
    if isinstance(begun, asyncio.Task):
        return Unfinished(begun)
    return _later(*begun) if isinstance(begun, _Waiting) else begun


class Unfinished:
    """An answer that needs more work. Waiting for it waits for the work and for its answer.

    The work is done even if the client disconnects meanwhile, as in Kafka: a producer with acks=0 does not wait for it.
    """

    def __init__(self, work: asyncio.Task[Answer | _Waiting]) -> None:
        self.work = work

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._to_its_end().__await__()

    async def _to_its_end(self) -> Answer:
        try:
            answer = await asyncio.shield(self.work)
        except asyncio.CancelledError:
            self.work.add_done_callback(_drop)
            raise
        return await _later(*answer) if isinstance(answer, _Waiting) else answer


def _drop(work: asyncio.Task[Answer | _Waiting]) -> None:
    """Drop the response that nobody waits for, or the error."""
    if not work.cancelled() and work.exception() is None:
        answer = work.result()
        if isinstance(answer, _Waiting) and iscoroutine(answer.response):
            answer.response.close()


def _find_route(services: Services, listener: Listener, frame: Frame) -> Route:
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
        counters = services.request_counters(api.name, 0)
        return Route(api, 0, read_header, lambda data, position: (None, position), handler_of(key), counters)
    request = message_class(api.request)
    route = services.routes[listener.is_controller, bytes(frame[:4])] = Route(
        api,
        version,
        read_header,
        reader(request, version),
        handler_of(key),
        services.request_counters(api.name, version),
        takes_views=takes_views(request),
        writes=key in WRITING_KEYS,
        is_forwarded=key in FORWARDABLE_KEYS - PARTLY_FORWARDED_KEYS and not listener.is_controller,
        faults=services.faults if services.faults is not None and services.faults.is_any else None,
    )
    return route


def _undecodable(route: Route, error: Exception) -> Refused:
    return Refused(f"{route.api.request} v{route.version} cannot be decoded: {error}")


def _refuse(request: Message, refusal: KafkaError) -> NoReturn:
    if getattr(request, "acks", None) == 0:
        raise Refused(f"{refusal.message}; a producer with acks=0 gets no error response")
    raise KafkaError(refusal.code, refusal.message)


def _audited(context: Context, request: Message | None, response: Response) -> Slices[None]:
    """Write the line of the audit log, if there is one and the request needs it."""
    audit = context.services.audit
    if audit is not None and audit.needs_line(context):
        yield from audit.answered(context, request, response)


def _answer(route: Route, context: Context, request: Message | None, response: Response) -> Answer:
    """Encode a small response and count it, at once."""
    if context.throttle_time_ms or context.time is not None:
        response = throttled(route.api, route.version, context, response)
    pieces = None
    if response is not None:
        pieces = encode_response(route.api, route.version, context.correlation_id, response)
        if isinstance(response, Message):
            route.counters.count_errors(response)
    if context.services.audit is not None:
        at_once(_audited(context, request, response))
    route.counters.latency_ns.observe(context.services.monotonic_ns() - context.began_ns)
    return pieces


def _encoded_in_slices(route: Route, context: Context, request: Message | None, response: Response) -> Slices[Answer]:
    """Do the same as `_answer`, with pauses."""
    if context.throttle_time_ms or context.time is not None:
        response = throttled(route.api, route.version, context, response)
    pieces = None
    if response is not None:
        pieces = yield from encode_response_in_slices(route.api, route.version, context.correlation_id, response)
        if isinstance(response, Message):
            if frame_size(pieces) <= SMALL_BYTES:
                route.counters.count_errors(response)
            else:
                yield from route.counters.count_errors_in_slices(response)
    if context.services.audit is not None:
        yield from _audited(context, request, response)
    route.counters.latency_ns.observe(context.services.monotonic_ns() - context.began_ns)
    return pieces


def _later(route: Route, context: Context, request: Message, response: Awaitable[Response]) -> Awaitable[Answer]:
    answer = _answered_later(route, context, request, response)
    if context.time is None:
        return answer
    context.time.pause()
    return context.time.of(answer)


async def _answered_later(route: Route, context: Context, request: Message, response: Awaitable[Response]) -> Answer:
    try:
        return await in_slices(_encoded_in_slices(route, context, request, await response))
    except Refused:
        await in_slices(_audited(context, request, None))
        raise
    except asyncio.CancelledError:
        if context.services.audit is not None:
            context.services.audit.left(context, request)
        raise
    except Exception as error:
        return await in_slices(_failed(route, context, request, error))


def _failed(route: Route, context: Context, request: Message, error: Exception) -> Slices[Answer]:
    if isinstance(error, KafkaError):
        code, message = error.code, error.message
    elif isinstance(error, TooLongError):  # the request has long names; Kafka's answer is the same
        text = "the response to %s v%d of %s cannot be written: %s"
        _log.warning(text, route.api.request, route.version, context.peer.host, error)
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
    else:
        _log.error("%s v%d of client %r failed", route.api.request, route.version, context.client_id, exc_info=error)
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
    response = yield from error_response_in_slices(route.api, route.version, request, code, message)
    return (yield from _encoded_in_slices(route, context, request, response))
