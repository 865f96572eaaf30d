"""FindCoordinator (10), versions 0 to 6; from version 4 on for several keys.

A key is a group (needs DESCRIBE on it), from version 1 on a transactional id (DESCRIBE), from version 6 on a share
partition `group:topic id:partition` (CLUSTER_ACTION). Its coordinator is the leader of the key's partition of the
internal topic. If that topic does not exist, it is created. Until the partition has a live leader, the response is
COORDINATOR_NOT_AVAILABLE. An unknown key type is INVALID_REQUEST for the whole request.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.replicated.placement import partition_for
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = range(3)
BATCHES_FROM = 4
SHARE_FROM = 6
TOPICS = {GROUP: GROUP_METADATA_TOPIC, TRANSACTION: TRANSACTION_STATE_TOPIC, SHARE: SHARE_GROUP_STATE_TOPIC}

Row = FindCoordinatorResponse.Coordinator


class Found(NamedTuple):
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle(context: Context, request: FindCoordinatorRequest) -> Slices[FindCoordinatorResponse]:
    keys = request.coordinator_keys if context.version >= BATCHES_FROM else [request.key]
    try:
        found = yield from mapped(partial(_find, context, request.key_type), keys)
    except KafkaError as error:
        found = [Found(error.code)] * len(keys)
        message = error.code.message
    else:
        message = ""
    if context.version < BATCHES_FROM:
        (one,) = found
        told = "NONE" if one.error is ErrorCode.NONE else one.error.message
        return FindCoordinatorResponse(
            error_code=one.error, error_message=told, node_id=one.node_id, host=one.host, port=one.port
        )
    rows = yield from mapped(lambda each: _row(*each, message), zip(keys, found, strict=True))
    return FindCoordinatorResponse(coordinators=rows)


def _row(key: str, found: Found, message: str | None) -> Row:
    error, node_id, host, port = found
    return Row(key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=message)


def _find(context: Context, key_type: int, key: str) -> Found:
    if key_type == GROUP and not context.may(AclOperation.DESCRIBE, ResourceType.GROUP, key):
        return Found(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION and not context.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        return Found(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if key_type == SHARE:
        if context.version < SHARE_FROM:
            return Found(ErrorCode.INVALID_REQUEST)
        context.require_on_cluster(AclOperation.CLUSTER_ACTION)
        if not _is_share_partition(key):
            return Found(ErrorCode.INVALID_REQUEST)
    if key_type not in TOPICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return _leader(context, TOPICS[key_type], key)


def _leader(context: Context, name: str, key: str) -> Found:
    topic = context.image.topics.get(name)
    if topic is None:
        context.services.topic_creation.begin([name], context)
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    broker = context.image.brokers.get(leader)
    if broker is None or broker.fenced or context.listener.name not in broker.listeners:
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = broker.listeners[context.listener.name]
    return Found(ErrorCode.NONE, leader, endpoint.host, endpoint.port)


def _is_share_partition(key: str) -> bool:
    group_id, _, rest = key.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        Uuid.parse(topic_id)
        int(rest)
    except ValueError:
        return False
    return bool(group_id.strip())
