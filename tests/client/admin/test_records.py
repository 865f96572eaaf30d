"""`Records` against a node of barnabas: offsets by their kinds and by time, and deleting records; and a leader that moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.leaders import by_leader
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.admin.records import (
    TO_HIGH_WATERMARK,
    EpochEndOffset,
    IsolationLevel,
    ListedOffset,
    OffsetSpec,
    Records,
)
from barnabas.client.records import TopicPartition
from barnabas.client.state import ClusterState, Node, Partition, Topic
from barnabas.testing import Broker
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Message
from barnabas.wire.messages.delete_records import DeleteRecordsResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": False, "transaction.state.log.num.partitions": 1}) as broker:
        yield broker


def run(broker: Broker, scenario: Callable[[Records], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            await scenario(Records(cluster))

    asyncio.run(main())


def write(broker: Broker, topic: str, times_ms: list[int], partition: int = 0, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=partition, timestamp=time_ms)
        producer.flush()


def code_of(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def test_offsets_are_found_at_both_ends_by_time_and_by_the_largest_timestamp(broker: Broker) -> None:
    broker.create_topic("timed", 2)
    write(broker, "timed", [T0_MS, T0_MS + 900, T0_MS + 500])
    zero, one = TopicPartition("timed", 0), TopicPartition("timed", 1)

    async def scenario(records: Records) -> None:
        async def asked(spec: int) -> tuple[ListedOffset, ListedOffset]:
            found = checked(await records.list_offsets({zero: spec, one: spec}))
            return found[zero], found[one]

        assert [each.offset for each in await asked(OffsetSpec.EARLIEST)] == [0, 0]
        assert [each.offset for each in await asked(OffsetSpec.LATEST)] == [3, 0]
        assert [each[:2] for each in await asked(OffsetSpec.MAX_TIMESTAMP)] == [(1, T0_MS + 900), (-1, -1)]
        assert [each[:2] for each in await asked(T0_MS + 1)] == [(1, T0_MS + 900), (-1, -1)]
        assert [each.offset for each in await asked(T0_MS + 901)] == [-1, -1]

    run(broker, scenario)


def test_an_open_transaction_hides_the_end_from_those_who_read_what_is_committed(broker: Broker) -> None:
    broker.create_topic("transacted", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("transacted", b"x", partition=0)
    producer.flush()
    where = {TopicPartition("transacted", 0): OffsetSpec.LATEST}

    async def scenario(records: Records) -> None:
        seen = checked(await records.list_offsets(where))
        committed = checked(await records.list_offsets(where, isolation_level=IsolationLevel.READ_COMMITTED))
        assert [each.offset for each in (*seen.values(), *committed.values())] == [1, 0]

    run(broker, scenario)
    producer.abort_transaction()


def test_partitions_that_are_not_there_fail_beside_those_that_are(broker: Broker) -> None:
    broker.create_topic("there", 1)

    async def scenario(records: Records) -> None:
        asked = [TopicPartition("there", 0), TopicPartition("there", 5), TopicPartition("nowhere", 0)]
        found = await records.list_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
        assert list(found) == asked
        assert isinstance(found[asked[0]], ListedOffset)
        assert code_of(found[asked[1]]) == code_of(found[asked[2]]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(broker, scenario)


def test_records_are_deleted_up_to_an_offset_and_up_to_the_end(broker: Broker) -> None:
    broker.create_topic("cut", 2)
    write(broker, "cut", [T0_MS] * 4)
    write(broker, "cut", [T0_MS] * 2, partition=1)
    zero, one = TopicPartition("cut", 0), TopicPartition("cut", 1)

    async def scenario(records: Records) -> None:
        assert await records.delete_records({zero: 3, one: TO_HIGH_WATERMARK}) == {zero: 3, one: 2}
        first = checked(await records.list_offsets(dict.fromkeys([zero, one], OffsetSpec.EARLIEST)))
        assert [each.offset for each in first.values()] == [3, 2]
        beyond = await records.delete_records({zero: 99, TopicPartition("nowhere", 0): 1})
        assert code_of(beyond[zero]) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert code_of(beyond[TopicPartition("nowhere", 0)]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(broker, scenario)


def test_a_leader_epoch_ends_where_the_log_does(broker: Broker) -> None:
    broker.create_topic("epochs", 1)
    write(broker, "epochs", [T0_MS] * 2)
    zero = TopicPartition("epochs", 0)

    async def scenario(records: Records) -> None:
        assert await records.offsets_for_leader_epochs({zero: 0}) == {zero: EpochEndOffset(0, 2)}

    run(broker, scenario)


def test_a_kind_of_offset_that_nobody_knows_is_refused(broker: Broker) -> None:
    broker.create_topic("kinds", 1)

    async def scenario(records: Records) -> None:
        with pytest.raises(ValueError, match="-9"):
            await records.list_offsets({TopicPartition("kinds", 0): -9})

    run(broker, scenario)


def test_partitions_without_a_leader_are_told_apart_from_those_that_are_not_there() -> None:
    partitions = {0: Partition(0, 1), 1: Partition(1, -1), 2: Partition(2, 9)}
    topic = Topic("a", ZERO_UUID, False, partitions)
    errors = {"b": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    state = ClusterState(nodes={1: Node(1, "h", 1)}, topics={"a": topic}, errors=errors)
    asked = [TopicPartition("a", number) for number in range(4)] + [TopicPartition("b", 0)]
    leaders, missing = by_leader(state, asked)
    assert leaders == {1: [TopicPartition("a", 0)]}
    assert [missing[each].code.name for each in asked[1:]] == [
        "LEADER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "TOPIC_AUTHORIZATION_FAILED",
    ]


# --- scripted leaders


def scripted(answers: Callable[[Asked], Message], **versions: tuple[int, int]) -> Any:
    ports: list[int] = []

    def answer(asked: Asked) -> bytes:
        if asked.name == "ApiVersions":
            return asked.answer(ranges(Metadata=(0, 12), **versions))
        if asked.name == "Metadata":
            row = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1])
            topic = MetadataResponse.MetadataResponseTopic(name="a", partitions=[row])
            return asked.answer(one_broker(ports[0], topic))
        return asked.answer(answers(asked))

    async def main(scenario: Callable[[Records], Coroutine[Any, Any, None]]) -> None:
        async with peer(answering(answer)) as port:
            ports.append(port)
            async with Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
                await scenario(Records(cluster))

    return lambda scenario: asyncio.run(main(scenario))


def listed(code: ErrorCode = ErrorCode.NONE, offset: int = 7) -> ListOffsetsResponse:
    row = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, error_code=int(code), offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="a", partitions=[row])])


HERE = TopicPartition("a", 0)


def test_a_partition_whose_leader_has_moved_is_asked_again() -> None:
    said = [listed(ErrorCode.NOT_LEADER_OR_FOLLOWER), listed(ErrorCode.OFFSET_NOT_AVAILABLE), listed()]

    async def scenario(records: Records) -> None:
        assert checked(await records.list_offsets({HERE: OffsetSpec.LATEST}))[HERE].offset == 7

    scripted(lambda asked: said.pop(0), ListOffsets=(1, 9))(scenario)
    assert not said


def test_a_refusal_is_not_asked_again() -> None:
    said = [listed(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]

    async def scenario(records: Records) -> None:
        found = await records.list_offsets({HERE: OffsetSpec.LATEST})
        assert code_of(found[HERE]) == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    scripted(lambda asked: said.pop(0), ListOffsets=(1, 9))(scenario)


def test_an_old_broker_does_not_know_the_largest_timestamp() -> None:
    async def scenario(records: Records) -> None:
        with pytest.raises(UnsupportedByNodeError, match="the offset of the largest timestamp needs version 7"):
            await records.list_offsets({HERE: OffsetSpec.MAX_TIMESTAMP})
        assert checked(await records.list_offsets({HERE: OffsetSpec.LATEST}))[HERE].offset == 7

    scripted(lambda asked: listed(), ListOffsets=(1, 5))(scenario)


def test_a_deletion_that_was_not_confirmed_is_looked_after() -> None:
    def answer(asked: Asked) -> Message:
        if asked.name == "ListOffsets":
            return listed(offset=5)
        late = int(ErrorCode.REQUEST_TIMED_OUT)
        row = DeleteRecordsResponse.DeleteRecordsPartitionResult(partition_index=0, error_code=late, low_watermark=-1)
        return DeleteRecordsResponse(
            topics=[DeleteRecordsResponse.DeleteRecordsTopicResult(name="a", partitions=[row])]
        )

    async def scenario(records: Records) -> None:
        for offset, happened in ((5, True), (6, False)):
            result = (await records.delete_records({HERE: offset}, timeout_ms=300))[HERE]
            assert isinstance(result, TimedOutError)
            assert result.happened is happened

    scripted(answer, ListOffsets=(1, 9), DeleteRecords=(0, 2))(scenario)
