"""The ends of partitions that this broker or others lead, as a consumer that reads uncommitted records sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from barnabas.broker.context import Services
from barnabas.replicas import reading
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import ListOffsetsRequest

LATEST = -1
TopicPartition = tuple[str, int]


async def end_offsets(
    services: Services, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int | ErrorCode]:
    """Return the end of each partition, or why it is not known now."""
    found: dict[TopicPartition, int | ErrorCode] = {}
    remote: dict[int, list[TopicPartition]] = {}
    image, others_first = services.image, Breather()
    for name, index in partitions:
        await others_first()
        topic = image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            found[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif (leader := topic.partitions[index].leader) == services.config.node_id:
            found[name, index] = await _own(services, name, index)
        elif leader < 0 or services.persister.ask_broker is None:
            found[name, index] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            remote.setdefault(leader, []).append((name, index))
    answers = await asyncio.gather(*(_ask(services, leader, asked) for leader, asked in remote.items()))
    for answer in answers:
        found.update(answer)
    return found


async def _own(services: Services, name: str, index: int) -> int | ErrorCode:
    try:
        opening = services.replicas.opening_of(name, index)
        if opening is not None:
            await opening
        partition = services.replicas.partition(name, index)
        reading.check_leadership(partition, -1, only_leader=True)
        return partition.high_watermark
    except KafkaError as error:
        return error.code


async def _ask(
    services: Services, leader: int, partitions: list[TopicPartition]
) -> dict[TopicPartition, int | ErrorCode]:
    kind = ListOffsetsRequest
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, index in partitions:
        row = kind.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        topics.setdefault(name, kind.ListOffsetsTopic(name=name)).partitions.append(row)
    found: dict[TopicPartition, int | ErrorCode] = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
    ask = services.persister.ask_broker
    try:
        assert ask is not None
        response = await ask(leader, kind(replica_id=-1, topics=list(topics.values())))
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)
    except (OSError, TimeoutError):
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    for topic in response.topics:
        for row in topic.partitions:
            found[topic.name, row.partition_index] = ErrorCode(row.error_code) if row.error_code else row.offset
    return found
