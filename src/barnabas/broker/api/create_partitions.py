"""CreatePartitions (37), versions 0 to 3.

Needs ALTER on the topic. `count` is the new total number of partitions. The controller places the new ones, or
`assignments` does, with one entry for each. Every topic has its own row, without a message if it is unknown or not
authorized. A duplicate name is INVALID_REQUEST. More than 10,000 new partitions in one request are refused, where Kafka
adds the first 10,000 and answers UNKNOWN_SERVER_ERROR. A client above its controller_mutation_rate gets
THROTTLING_QUOTA_EXCEEDED in version 3; before, its request is accepted. Either way its connection is then muted.
"""

from __future__ import annotations

from collections import Counter

from barnabas.broker.context import Context
from barnabas.broker.mutation_throttle import MutationThrottle
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.controller import topics
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Row = CreatePartitionsResponse.CreatePartitionsTopicResult
STRICT_FROM = 3


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    twice = await in_slices(hash_order_in_slices(name for name, count in times.items() if count > 1))
    rows = [Row(name=n, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.") for n in twice]
    wanted = {topic.name: topic for topic in request.topics if times[topic.name] == 1}
    names = [name for name in await in_slices(hash_order_in_slices(times)) if name in wanted]
    may = await in_slices(mapped(lambda name: context.may(AclOperation.ALTER, ResourceType.TOPIC, name), names))
    accepted = [wanted[name] for name, allowed in zip(names, may, strict=True) if allowed]
    refused = (name for name, allowed in zip(names, may, strict=True) if not allowed)
    rows += [Row(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in refused]
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
            rows = [Row(name=t.name, error_code=error.code, error_message=message) for t in request.topics]
    throttle.apply()
    return CreatePartitionsResponse(results=rows)
