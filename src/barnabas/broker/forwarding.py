"""Forwards requests of clients to the active controller, in Envelope (58) with the client's principal and address.

Its one rule: the client gets the controller's answer as it is. An error of the envelope itself is a fault of this cluster,
so the client gets UNKNOWN_SERVER_ERROR, as in Kafka.
"""

from __future__ import annotations

import ipaddress
import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import AuthenticationError, TlsError
from barnabas.security.acl import host_text
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import (
    APIS,
    ErrorCode,
    KafkaError,
    MalformedError,
    Message,
    decode,
    decode_from,
    encode,
)
from barnabas.wire.messages.default_principal_data import DefaultPrincipalData
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.header import RequestHeader

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.broker.controller_channel import ControllerChannel
    from barnabas.wire import Api

_log = logging.getLogger(__name__)

TIMEOUT_MS: Final = 60_000
ENVELOPE_VERSION: Final = 0
PRINCIPAL_VERSION: Final = 0
_VERSION: Final = struct.Struct(">h")

# Their responses tell the broker how long to throttle the client.
_THROTTLED: Final = frozenset({"CreateTopics", "DeleteTopics", "CreatePartitions"})


class Forwarding:
    """The way of clients' requests to the active controller. `is_active` tells whether that is this node itself."""

    def __init__(self, channel: ControllerChannel, is_active: Callable[[], bool]) -> None:
        self._channel = channel
        self._is_active = is_active

    @property
    def is_needed(self) -> bool:
        return not self._is_active()

    async def forward(self, api: Api, context: Context, frame: bytes) -> bytes:
        """Return the body of the controller's response to a request, which is passed with its header.

        Raises KafkaError: REQUEST_TIMED_OUT if no controller answered in time.
        """
        peer = context.peer
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(peer.principal),
            client_host_address=encode_address(peer.host),
        )
        try:
            response: EnvelopeResponse = await self._channel.call(envelope, ENVELOPE_VERSION, timeout_ms=TIMEOUT_MS)
        except TimeoutError as error:
            _log.warning("%s of client %r could not be forwarded: %s", api.request, context.client_id, error)
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from error
        except (AuthenticationError, TlsError) as error:  # of this node: the client's own login is good
            _log.error("%s of client %r could not be forwarded: %s", api.request, context.client_id, error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        if response.error_code:
            code = ErrorCode(response.error_code)
            _log.error("the active controller refused an envelope with %s: %s", api.request, code.name)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        data = bytes(response.response_data or b"")
        try:
            _, position = decode_from("ResponseHeader", api.response_header_version(context.version), data, 0)
        except MalformedError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        body = data[position:]
        if api.name in _THROTTLED and peer.information is not None:
            peer.information.mute_ms = decode(api.response, context.version, body).throttle_time_ms
        return body

    async def forward_message(self, context: Context, request: Message) -> Any:
        """Return the controller's response to a request that this broker makes for the caller, in its version."""
        key = request.schema().key
        assert key is not None
        api, version = APIS[key], context.version
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=context.correlation_id,
            client_id=context.client_id,
        )
        frame = encode(header, api.request_header_version(version)) + encode(request, version)
        return decode(api.response, version, await self.forward(api, context, frame))


def encode_principal(principal: KafkaPrincipal) -> bytes:
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated
    )
    return _VERSION.pack(PRINCIPAL_VERSION) + encode(data, PRINCIPAL_VERSION)


def decode_principal(data: bytes | None) -> KafkaPrincipal:
    """Decode the principal of an envelope. Raises KafkaError."""
    try:
        (version,) = _VERSION.unpack_from(data or b"")
        found: DefaultPrincipalData = decode(DefaultPrincipalData, version, (data or b"")[_VERSION.size :])
    except (MalformedError, struct.error, ValueError, KeyError) as error:
        text = f"Failed to deserialize client principal: {error}"
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, text) from error
    return KafkaPrincipal(found.type, found.name, found.token_authenticated)


def encode_address(host: str) -> bytes:
    return ipaddress.ip_address(host).packed


def decode_address(data: bytes) -> str:
    """Decode the client's address in an envelope. Raises KafkaError."""
    try:
        return host_text(str(ipaddress.ip_address(bytes(data))))
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope") from error
