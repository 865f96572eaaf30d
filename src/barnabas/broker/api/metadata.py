"""Metadata (3), versions 0 to 13.

Returns topics by name, from version 12 on by id (then names are ignored), none, or all (null; in version 0 an empty
list). Topics that the caller may not DESCRIBE are left out of all, and refused if requested, even if they do not exist.
An unknown name is UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION if it is not a legal topic name. With
`allow_auto_topic_creation` and auto.create.topics.enable, a request for an unknown name starts its creation and does
not wait for it. That needs CREATE on the cluster or the topic.

Brokers are the live ones that have the listener of the request. The controller is any of them, because every broker
forwards requests. Requested topics come in the order of the request, known ones first; all topics are sorted by name.
Not done: the response never asks clients to rebootstrap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.broker.context import Context
from barnabas.broker.encoded_topics import NO_OPERATIONS, TopicsView, metadata_form
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.config.topic_names import is_valid
from barnabas.metadata.topics import Topic
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, stepwise
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid, encode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

_IDS_FROM = 12
_CLUSTER_OPERATIONS = range(8, 11)


def handle(context: Context, request: MetadataRequest) -> Slices[MetadataResponse | bytes]:
    try:
        view = context.services.encoded_topics.view(
            metadata_form(context.version), context.listener.name, context.image.brokers
        )
        topics = yield from _topics(context, request, view)
        return _with_topics(_response(context, request), context.version, topics)
    except KafkaError as error:
        return _failed(request, error.code)


def _failed(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    topics = [
        MetadataResponse.MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


def _response(context: Context, request: MetadataRequest) -> MetadataResponse:
    """Return the response without the topics."""
    listener = context.listener.name
    alive = [
        (broker_id, broker.listeners[listener], broker.rack)
        for broker_id, broker in sorted(context.image.brokers.items())
        if not broker.fenced and listener in broker.listeners
    ]
    response = MetadataResponse(cluster_id=context.services.cluster_id)
    response.brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=rack)
        for broker_id, endpoint, rack in alive
    ]
    if alive:  # in turn, so that admin requests spread over the brokers
        response.controller_id = alive[context.correlation_id % len(alive)][0]
    if context.version in _CLUSTER_OPERATIONS and request.include_cluster_authorized_operations:
        may_describe = context.is_allowed(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        operations = context.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME) if may_describe else 0
        response.cluster_authorized_operations = operations
    return response


def _with_topics(response: MetadataResponse, version: int, topics: bytes) -> bytes:
    """Encode the response with these encoded topics instead of its empty list."""
    body = encode(response, version)
    after = {8: 4, 9: 5, 10: 5, 11: 1, 12: 1, 13: 3}.get(version, 0)
    end = len(body) - after
    start = end - (1 if version >= 9 else 4)
    return b"".join((body[:start], topics, body[end:]))


def _topics(context: Context, request: MetadataRequest, view: TopicsView) -> Slices[bytes]:
    if request.topics is None or (context.version == 0 and not request.topics):
        return (yield from _all(context, request, view))
    ids: dict[Uuid, None] = {}
    names: dict[str | None, None] = {}
    for some in stepwise(request.topics):
        ids.update((topic.topic_id, None) for topic in some if topic.topic_id != ZERO_UUID)
        names.update((topic.name, None) for topic in some)
        yield
    if (ids or None in names) and context.version < _IDS_FROM:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    rows: list[bytes] = []
    for row in _by_id(context, request, view, ids) if ids else _by_name(context, request, view, names):
        if row is not None:
            rows.append(row)
        yield
    return b"".join((view.length(len(rows)), *rows))


def _operations(context: Context, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return NO_OPERATIONS
    return context.authorized_operations(ResourceType.TOPIC, name)


def _may_describe(context: Context, name: str) -> bool:
    return context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _all(context: Context, request: MetadataRequest, view: TopicsView) -> Slices[bytes]:
    topics = context.image.topics
    if context.may_everything:
        return (yield from view.all(topics, _operations(context, request, "")))
    rows = []
    for name in topics.names:
        yield
        if context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            rows.append(_row(context, request, view, topics.by_id[topics.ids[name]]))
    return b"".join((view.length(len(rows)), *rows))


def _row(context: Context, request: MetadataRequest, view: TopicsView, topic: Topic) -> bytes:
    return view.topic(topic) + view.ending(_operations(context, request, topic.name))


# The rows of topics, or None where the search for them may pause.
def _by_id(context: Context, request: MetadataRequest, view: TopicsView, ids: Iterable[Uuid]) -> Iterator[bytes | None]:
    by_id = context.image.topics.by_id
    for topic_id in ids:
        if topic_id not in by_id:
            yield view.failed(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id) + view.ending()
        else:
            yield None
    refused = []
    for topic_id in ids:
        topic = by_id.get(topic_id)
        if topic is not None and _may_describe(context, topic.name):
            yield _row(context, request, view, topic)
            continue
        if topic is not None:
            refused.append(topic_id)
        yield None
    for topic_id in refused:  # the caller knows the id, but may not learn the name
        yield view.failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id) + view.ending()


def _by_name(
    context: Context, request: MetadataRequest, view: TopicsView, names: Iterable[str | None]
) -> Iterator[bytes | None]:
    missing: list[str] = []
    refused: list[str] = []
    for name in names:
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        topic = context.image.topics.get(name)
        if topic is not None and _may_describe(context, name):
            yield _row(context, request, view, topic)
            continue
        (missing if topic is None and _may_describe(context, name) else refused).append(name)
        yield None
    yield from _missing(context, request, view, missing)
    for name in refused:
        yield view.failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) + view.ending()


def _missing(context: Context, request: MetadataRequest, view: TopicsView, names: list[str]) -> Iterator[bytes | None]:
    """Yield the rows of topics that do not exist. Start to create them if requested, enabled and authorized."""
    refused, created = [], []
    creates = request.allow_auto_topic_creation and context.config.get_bool("auto.create.topics.enable")
    may_all = not creates or context.is_allowed(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    for name in names:
        if not may_all and not context.may(AclOperation.CREATE, ResourceType.TOPIC, name):
            refused.append(name)
            yield None
            continue
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
        if creates and code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            created.append(name)
        ending = view.ending(_operations(context, request, name))
        yield view.failed(code, name, internal=name in INTERNAL_TOPICS) + ending
    if created:
        context.services.topic_creation.begin(created, context, as_caller=True)
    for name in refused:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        yield view.failed(code, name, internal=name in INTERNAL_TOPICS) + view.ending()
