"""CreatePartitions (37), versions 0 to 3.

Needs ALTER on the topic. `count` is the new total number of partitions. The controller places the new ones, or
`assignments` does, with one entry for each. Every topic has its own row, without a message if it is unknown or not
authorized. A duplicate name is INVALID_REQUEST. More than 10,000 new partitions in one request are refused, where Kafka
adds the first 10,000 and answers UNKNOWN_SERVER_ERROR. A client above its controller_mutation_rate gets
THROTTLING_QUOTA_EXCEEDED in version 3; before, its request is accepted. Either way its connection is then muted.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from barnabas.broker.context import Context
from barnabas.broker.mutation_throttle import MutationThrottle
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.controller import topics
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Breather, Slices, in_slices
from barnabas.steps import counted, mapped, stepwise
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Row = CreatePartitionsResponse.CreatePartitionsTopicResult
Topic = CreatePartitionsRequest.CreatePartitionsTopic
STRICT_FROM = 3


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    others_first = Breather()
    times = await in_slices(counted(topic.name for topic in request.topics))
    twice = await in_slices(hash_order_in_slices(name for name, count in times.items() if count > 1))
    rows = await in_slices(mapped(_duplicate, twice))
    wanted = await in_slices(_once(request.topics, times))
    accepted: list[Topic] = []
    for name in await in_slices(hash_order_in_slices(times)):
        await others_first()
        if name not in wanted:
            continue
        if context.may(AclOperation.ALTER, ResourceType.TOPIC, name):
            accepted.append(wanted[name])
        else:
            rows.append(Row(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    throttle = MutationThrottle(context, strict_from=STRICT_FROM)
    if accepted:
        try:
            done = await context.controller.write(
                throttle.limited(topics.create_partitions), accepted, request.validate_only,
                timeout_ms=request.timeout_ms, accepted=throttle.accepted,
            )  # fmt: skip
            rows += done.answers
        except KafkaError as error:
            message = None if error.message == error.code.message else error.message
            failed = partial(_failed, error.code, message)
            rows = await in_slices(mapped(failed, request.topics))
    throttle.apply()
    return CreatePartitionsResponse(results=rows)


def _once(topics: list[Topic], times: Counter[str]) -> Slices[dict[str, Topic]]:
    """Return the topics whose name is there once, by name."""
    found: dict[str, Topic] = {}
    for some in stepwise(topics):
        found.update((topic.name, topic) for topic in some if times[topic.name] == 1)
        yield
    return found


def _duplicate(name: str) -> Row:
    return Row(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.")


def _failed(code: ErrorCode, message: str | None, topic: Topic) -> Row:
    return Row(name=topic.name, error_code=code, error_message=message)
