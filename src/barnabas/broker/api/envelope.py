"""Envelope (58), version 0; on the controller's listener: a request that a broker forwards for one of its clients.

The enclosed request is carried out as the client's: with its principal and address, on this listener. Needs
CLUSTER_ACTION. If this node is not the active controller, the envelope itself has NOT_CONTROLLER, so that the broker looks
for the one that is. An API that brokers do not forward is INVALID_REQUEST, a principal that cannot be decoded
PRINCIPAL_DESERIALIZATION_FAILURE.
"""

from __future__ import annotations

import struct

from barnabas.broker.context import ClientInformation, Context, Peer
from barnabas.broker.dispatch import Refused, answer_enclosed
from barnabas.broker.forwarding import decode_address, decode_principal
from barnabas.broker.served import FORWARDABLE_KEYS, served_versions
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import APIS, ErrorCode, KafkaError
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

_KEY_AND_VERSION = struct.Struct(">hh")


async def handle(context: Context, request: EnvelopeRequest) -> EnvelopeResponse:
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        text = f"Principal {context.peer.principal} does not have required CLUSTER_ACTION for envelope"
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    frame = bytes(request.request_data)
    principal = decode_principal(request.request_principal)
    host = decode_address(request.client_host_address)
    _check_forwardable(frame)
    peer = Peer(host, principal, context.listener, ClientInformation(), is_forwarded=True)
    try:
        return EnvelopeResponse(response_data=await answer_enclosed(frame, context.services, peer))
    except Refused as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _check_forwardable(frame: bytes) -> None:
    if len(frame) < _KEY_AND_VERSION.size:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse request header from envelope")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    if key not in FORWARDABLE_KEYS:
        name = APIS[key].name if key in APIS else str(key)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {name} is not enabled or is not eligible for forwarding")
    if version not in served_versions(key):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
