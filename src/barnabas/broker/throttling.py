"""Throttling: how a response tells a client above its quotas to wait, and its connection is muted.

A handler calls `Context.throttle` for each quota that its request exceeds; the longest time counts. The quota on time,
`request_percentage`, is applied here to every request, except those that nodes send to each other. The client is answered at
once, with the throttle time if its version has that field. Then its connection is muted for that time: no request is read
from it, so a client that honours the throttle time notices nothing of it. Kafka has done so in all versions since 2.0.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.request_time import RequestTime
from barnabas.wire import Api, ErrorCode, Message, decode, encode, message_class

if TYPE_CHECKING:
    from barnabas.broker.context import Context, Peer, Services

_FIELD: Final = "throttle_time_ms"
_TIME: Final = struct.Struct(">i")

BETWEEN_NODES: Final = frozenset(
    {
        *("AlterPartition", "AllocateProducerIds", "AssignReplicasToDirs", "WriteTxnMarkers"),
        *("BrokerHeartbeat", "BrokerRegistration", "ControllerRegistration"),
        *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "UpdateRaftVoter"),
    }
)
"""Requests of nodes. Their time is not limited, unless the caller is not allowed to send them."""


def time_of(services: Services, peer: Peer) -> RequestTime | None:
    """Return the measured time of a request that begins now, or None: logins are not limited."""
    login = None if peer.information is None else peer.information.login
    if login is not None and login.is_under_way:
        return None
    return RequestTime(services.quotas.request, peer.principal.name, services.monotonic_ns)


def record_time(context: Context) -> None:
    """Apply the quota on time to a request that is about to be answered, once."""
    time = context.time
    if time is not None and not time.was_recorded:
        now_ms = context.services.monotonic_ms()
        context.throttle(context.services.quotas.request, time.record(context.client_id, now_ms))


def throttled(api: Api, version: int, context: Context, response: Any) -> Any:
    """Apply the quota on time, mute a throttled connection, and return the response with its throttle time."""
    if context.time is not None:
        if context.is_exempt or (api.name in BETWEEN_NODES and not _is_refused(response)):
            context.time = None
        else:
            record_time(context)
            if context.peer.information is not None:
                context.peer.information.time = context.time
    time_ms = context.throttle_time_ms
    if not time_ms:
        return response
    if context.throttled_by is not None:
        context.throttled_by.count(time_ms)
    if context.peer.information is not None:
        context.peer.information.mute_ms = time_ms
    if isinstance(response, bytes):
        return _with_time(api, version, response, time_ms)
    if hasattr(response, _FIELD):
        response.throttle_time_ms = time_ms
    return response


def _is_refused(response: object) -> bool:
    return getattr(response, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _with_time(api: Api, version: int, body: bytes, time_ms: int) -> bytes:
    """Return an encoded response with this throttle time."""
    fields = [each for each in message_class(api.response).schema().root.fields if version in each.versions]
    if fields[0].name == _FIELD:  # also if the response is large
        return _TIME.pack(time_ms) + body[_TIME.size :]
    if not any(field.name == _FIELD for field in fields):
        return body
    response: Message = decode(api.response, version, body)
    setattr(response, _FIELD, time_ms)
    return encode(response, version)
