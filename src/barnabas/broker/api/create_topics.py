"""CreateTopics (19), versions 0 to 7.

Needs CREATE on the cluster or on the topic. Each topic has its own row. A duplicate name, or that of the metadata log,
is INVALID_REQUEST. A topic with several errors gets the first in this order: name, existence, settings, placement. From
version 5 on, the response has the settings in force if the caller may describe them (otherwise topic_config_error_code
is TOPIC_AUTHORIZATION_FAILED). Version 7 has the topic's id, even if the request only validates. More than 10,000
partitions in one request are refused as a whole. A client above its controller_mutation_rate gets
THROTTLING_QUOTA_EXCEEDED from version 6 on; before, its request is accepted. Either way its connection is then muted.

Not done: create.topic.policy.class.name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from barnabas.broker.context import Context
from barnabas.broker.mutation_throttle import MutationThrottle
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.controller import topics
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, counted, mapped, stepwise
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Row = CreateTopicsResponse.CreatableTopicResult

STRICT_FROM = 6
_FIRST_WITH_CONFIGS = 5


async def handle(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times = await in_slices(counted(topic.name for topic in request.topics))
    refused = await in_slices(_refused(context, times))
    accepted = await in_slices(_accepted(request, refused))
    describable = await in_slices(_describable(context, accepted))
    rows: list[Row] = []
    throttle = MutationThrottle(context, strict_from=STRICT_FROM)
    if accepted:
        try:
            created = await context.controller.write(
                throttle.limited(topics.create), accepted, describable, request.validate_only,
                timeout_ms=request.timeout_ms, accepted=throttle.accepted,
            )  # fmt: skip
            rows = created.answers
        except KafkaError as error:
            message = None if error.message == error.code.message else error.message
            code = error.code
            failed = await in_slices(mapped(lambda topic: _failed(topic.name, code, message), request.topics))
            return CreateTopicsResponse(topics=failed)
    throttle.apply()
    return CreateTopicsResponse(topics=[*rows, *refused.values()])


def _failed(name: str, code: ErrorCode, message: str | None) -> Row:
    return Row(name=name, error_code=code, error_message=message)


def _refused(context: Context, times: Counter[str]) -> Slices[dict[str, Row]]:
    """Return the rows of topics that are refused without asking the controller."""
    may_create_all = context.is_allowed(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    twice = yield from hash_order_in_slices(name for name, count in times.items() if count > 1)
    rows = {name: _failed(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name in twice}
    once = yield from hash_order_in_slices(name for name in times if name not in rows)
    for name in once:
        yield
        if name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {name} is prohibited."
            rows[name] = _failed(name, ErrorCode.INVALID_REQUEST, text)
        elif not may_create_all and not context.may(AclOperation.CREATE, ResourceType.TOPIC, name):
            rows[name] = _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return rows


def _accepted(
    request: CreateTopicsRequest, refused: Container[str]
) -> Slices[list[CreateTopicsRequest.CreatableTopic]]:
    accepted: list[CreateTopicsRequest.CreatableTopic] = []
    for some in stepwise(request.topics):
        accepted += [topic for topic in some if topic.name not in refused]
        yield
    return accepted


def _describable(context: Context, accepted: list[CreateTopicsRequest.CreatableTopic]) -> Slices[frozenset[str]]:
    if context.version < _FIRST_WITH_CONFIGS:
        return frozenset()
    names: set[str] = set()
    for topic in accepted:
        if context.is_allowed(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
            names.add(topic.name)
        yield
    return frozenset(names)
