"""DeleteTopics (20), versions 0 to 6.

Needs DELETE on the topic or on the cluster. Topics are given by name, or from version 6 on by id. An unknown id is
UNKNOWN_TOPIC_ID, an unknown name UNKNOWN_TOPIC_OR_PARTITION. A topic given twice, with both name and id, or with
neither is INVALID_REQUEST and not deleted. A topic that the caller may not DESCRIBE gets the same row whether it exists
or not. `delete.topic.enable=false` refuses everything. Rows of ids come before those of names (Kafka shuffles them
all). A client above its controller_mutation_rate gets THROTTLING_QUOTA_EXCEEDED from version 5 on; before, its request
is accepted. Either way its connection is then muted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from barnabas.broker.context import Context
from barnabas.broker.mutation_throttle import MutationThrottle
from barnabas.controller import topics
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, counted, mapped
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Row = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState
STRICT_FROM = 5


async def handle(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = request.topics
    if context.version < 6:
        asked = await in_slices(mapped(lambda name: State(name=name), request.topic_names))
    if not context.config.get_bool("delete.topic.enable"):
        code = ErrorCode.TOPIC_DELETION_DISABLED if context.version >= 3 else ErrorCode.INVALID_REQUEST
        return await in_slices(_all_failed(asked, code))
    rows, names, ids = await in_slices(_asked_for(asked))
    if (names or ids) and request.timeout_ms <= 0:  # Kafka times out when it looks them up
        return await in_slices(_all_failed(asked, ErrorCode.REQUEST_TIMED_OUT))
    chosen: dict[Uuid, Row] = {}
    may_delete_all = context.is_allowed(AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)
    rows += await in_slices(mapped(lambda topic_id: _choose_by_id(context, topic_id, chosen, may_delete_all), ids))
    given_ids = await in_slices(counted(topic.topic_id for topic in asked))
    replaced: set[int] = set()
    rows += await in_slices(
        mapped(lambda name: _choose_by_name(context, name, chosen, given_ids, may_delete_all, replaced), names)
    )
    rows = [row for row in rows if id(row) not in replaced]
    throttle = MutationThrottle(context, strict_from=STRICT_FROM)
    if chosen:
        try:
            deleted = await context.controller.write(
                throttle.limited(topics.delete), list(chosen), timeout_ms=request.timeout_ms, accepted=throttle.accepted
            )
        except KafkaError as error:
            return await in_slices(_all_failed(asked, error.code))
        for topic_id, failure in deleted.answers.items():
            if failure is not None:
                chosen[topic_id].error_code = failure.code
    throttle.apply()
    return DeleteTopicsResponse(responses=rows)


def _all_failed(asked: list[State], code: ErrorCode) -> Slices[DeleteTopicsResponse]:
    rows = yield from mapped(lambda t: Row(name=t.name, topic_id=t.topic_id, error_code=code), asked)
    return DeleteTopicsResponse(responses=rows)


def _failed(name: str | None, topic_id: Uuid, code: ErrorCode, message: str | None = None) -> Row:
    return Row(name=name, topic_id=topic_id, error_code=code, error_message=message or code.message)


def _asked_for(asked: list[State]) -> Slices[tuple[list[Row], list[str], list[Uuid]]]:
    """Return the rows that fail at once, and the names and ids that were given exactly once."""
    rows = []
    names, ids = Counter[str](), Counter[Uuid]()
    invalid = ErrorCode.INVALID_REQUEST
    for topic in asked:
        yield
        if topic.name is None and topic.topic_id == ZERO_UUID:
            rows.append(_failed(None, ZERO_UUID, invalid, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            text = "You may not specify both topic name and topic id."
            rows.append(_failed(topic.name, topic.topic_id, invalid, text))
    rows += [_failed(n, ZERO_UUID, invalid, "Duplicate topic name.") for n, count in names.items() if count > 1]
    rows += [_failed(None, i, invalid, "Duplicate topic id.") for i, count in ids.items() if count > 1]
    return rows, [name for name, count in names.items() if count == 1], [i for i, count in ids.items() if count == 1]


def _choose_by_id(context: Context, topic_id: Uuid, chosen: dict[Uuid, Row], may_delete_all: bool) -> Row:
    topic = context.image.topics.by_id.get(topic_id)
    if topic is None:
        return _failed(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    if may_delete_all or context.may(AclOperation.DELETE, ResourceType.TOPIC, topic.name):
        row = chosen[topic_id] = Row(name=topic.name, topic_id=topic_id)
        return row
    shown = topic.name if context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name) else None
    return _failed(shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _choose_by_name(
    context: Context,
    name: str,
    chosen: dict[Uuid, Row],
    given_ids: Container[Uuid],
    may_delete_all: bool,
    replaced: set[int],
) -> Row:
    """Return the row of a name. The row of an id that the name has too is put into `replaced`, by its identity."""
    topic = context.image.topics.get(name)
    if not may_delete_all and not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        return _failed(name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        return _failed(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not may_delete_all and not context.may(AclOperation.DELETE, ResourceType.TOPIC, name):
        return _failed(name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic.topic_id in given_ids:
        if topic.topic_id in chosen:
            replaced.add(id(chosen.pop(topic.topic_id)))
        text = "The provided topic name maps to an ID that was already supplied."
        return _failed(name, topic.topic_id, ErrorCode.INVALID_REQUEST, text)
    row = chosen[topic.topic_id] = Row(name=name, topic_id=topic.topic_id)
    return row
