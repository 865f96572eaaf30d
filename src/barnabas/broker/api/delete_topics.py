"""DeleteTopics (20), versions 0 to 6.

Topics are named, or from version 6 given by id. Ids that do not exist are UNKNOWN_TOPIC_ID, names UNKNOWN_TOPIC_OR_PARTITION;
what is given twice, or by both, or by neither, is INVALID_REQUEST and not deleted. A topic that the caller may not
describe is refused as if it did not matter whether it exists. `delete.topic.enable=false` refuses everything.
"""

from __future__ import annotations

from collections import Counter

from barnabas.broker.context import Context
from barnabas.controller import topics
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Row = DeleteTopicsResponse.DeletableTopicResult


async def handle(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not context.config.get_bool("delete.topic.enable"):
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED if context.version >= 3 else ErrorCode.INVALID_REQUEST)
    rows, names, ids = _asked_for(request)
    chosen: dict[Uuid, str] = {}
    for topic_id in ids:
        _choose_by_id(context, topic_id, chosen, rows)
    for name in names:
        _choose_by_name(context, name, chosen, rows)
    errors = await context.controller.write(topics.delete, list(chosen), timeout_ms=request.timeout_ms)
    rows += [_row(chosen[topic_id], topic_id, error) for topic_id, error in errors.items()]
    return DeleteTopicsResponse(responses=rows)


def _row(name: str | None, topic_id: Uuid, error: KafkaError | None) -> Row:
    if error is None:
        return Row(name=name, topic_id=topic_id)
    return Row(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)


def _asked_for(request: DeleteTopicsRequest) -> tuple[list[Row], list[str], list[Uuid]]:
    """The rows that fail at once, and the names and ids that were given once."""
    rows = []
    names, ids = Counter(request.topic_names), Counter[Uuid]()
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            why = KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
            rows.append(_row(None, ZERO_UUID, why))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            why = KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
            rows.append(_row(topic.name, topic.topic_id, why))
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    rows += [_row(name, ZERO_UUID, twice) for name, count in names.items() if count > 1]
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    rows += [_row(None, topic_id, twice) for topic_id, count in ids.items() if count > 1]
    return rows, [name for name, count in names.items() if count == 1], [i for i, count in ids.items() if count == 1]


def _choose_by_id(context: Context, topic_id: Uuid, chosen: dict[Uuid, str], rows: list[Row]) -> None:
    topic = context.image.topics.by_id.get(topic_id)
    if topic is None:
        rows.append(_row(None, topic_id, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)))
    elif context.may(AclOperation.DELETE, ResourceType.TOPIC, topic.name):
        chosen[topic_id] = topic.name
    else:
        shown = topic.name if context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name) else None
        rows.append(_row(shown, topic_id, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))


def _choose_by_name(context: Context, name: str, chosen: dict[Uuid, str], rows: list[Row]) -> None:
    topic = context.image.topics.get(name)
    if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        rows.append(_row(name, ZERO_UUID, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    elif topic is None:
        rows.append(_row(name, ZERO_UUID, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
    elif not context.may(AclOperation.DELETE, ResourceType.TOPIC, name):
        rows.append(_row(name, ZERO_UUID, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    elif topic.topic_id in chosen:
        del chosen[topic.topic_id]
        why = "The provided topic name maps to an ID that was already supplied."
        rows.append(_row(name, topic.topic_id, KafkaError(ErrorCode.INVALID_REQUEST, why)))
    else:
        chosen[topic.topic_id] = name
