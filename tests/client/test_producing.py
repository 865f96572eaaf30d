"""What a producer decides: partitions, order, who it is. No node."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.batches import Compression, Record, check_crc, decode_header, decode_records
from barnabas.client.producing.batch import Batch, PartitionQueue
from barnabas.client.producing.identity import MAX_EPOCH, NOBODY, Identity, State
from barnabas.client.producing.partitioner import StickyPartitioner, murmur2, partition_of
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError

PLACE = TopicPartition("orders", 0)
PRODUCER = (7, 0)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_in_java(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF
    assert partition_of(key, 10) == (expected & 0x7FFFFFFF) % 10


def test_records_without_keys_stay_until_a_batch_is_full_and_then_go_elsewhere() -> None:
    partitioner = StickyPartitioner(100, iter([0.0, 0.0, 0.9, 0.0, 0.0]).__next__)
    available = (0, 1, 2)
    places = [partitioner.partition(50, available) for _ in range(8)]
    assert places == [0, 0, 1, 1, 2, 2, 0, 0]
    assert partitioner.partition(50, (2,)) == 2  # the others have no leader now


def filled(queue: PartitionQueue, batches: int, records: int = 2) -> list[Batch]:
    for number in range(batches):
        queue.open = None
        for index in range(records):
            queue.append(Record(-1, 0, None, b"%d" % (number * records + index)), 30, 10_000, 0.0)
    queue.open = None
    return list(queue.waiting)


def known() -> PartitionQueue:
    """A queue whose partition has a batch of the producer already."""
    queue = PartitionQueue(PLACE)
    queue.known_id = PRODUCER[0]
    return queue


def test_a_partition_that_does_not_know_the_producer_gets_one_batch_at_first() -> None:
    queue = PartitionQueue(PLACE)
    first, second, third, _ = filled(queue, 4)
    assert queue.drain(PRODUCER) is first
    assert not queue.may_drain(PRODUCER)  # if the first were refused, any sequence number would be accepted
    queue.put_back(first)
    assert queue.drain(PRODUCER) is first
    queue.acked(first, 0)
    assert queue.drain(PRODUCER) is second
    assert queue.may_drain(PRODUCER)
    queue.acked(second, 2)
    assert queue.may_drain((8, 0))  # another producer id is as unknown as the first one was
    assert queue.drain((8, 0)) is third
    assert not queue.may_drain((8, 0))


def test_batches_get_sequences_in_order_and_no_more_than_five_are_under_way() -> None:
    queue = known()
    batches = filled(queue, 7)
    while queue.waiting and queue.may_drain(PRODUCER):
        queue.drain(PRODUCER)
    assert [batch.base_sequence for batch in batches] == [0, 2, 4, 6, 8, -1, -1]
    queue.acked(batches[0], 100)
    assert queue.may_drain(PRODUCER)


def test_what_is_sent_again_goes_first_and_alone() -> None:
    queue = PartitionQueue(PLACE)
    first, second, third, fourth = filled(queue, 4)
    for _ in range(3):
        queue.drain(PRODUCER)
    for batch in (second, first, third):  # whatever order the answers have
        batch.attempts += 1
        queue.put_back(batch)
    assert list(queue.waiting) == [first, second, third, fourth]
    assert queue.drain(PRODUCER) is first
    assert not queue.may_drain(PRODUCER)  # the second waits for the first
    queue.acked(first, 0)
    assert queue.drain(PRODUCER) is second
    queue.acked(second, 2)
    assert queue.drain(PRODUCER) is third
    queue.acked(third, 4)
    assert (queue.drain(PRODUCER), fourth.base_sequence) == (fourth, 6)


def test_a_new_epoch_begins_at_zero_with_what_is_under_way() -> None:
    queue = PartitionQueue(PLACE)
    first, second, third = filled(queue, 3)
    for batch in (first, second):
        queue.drain(PRODUCER)
        batch.encode(Compression.LZ4, None, is_transactional=False)
        batch.stamp(batch.producer, batch.base_sequence)
    queue.given_up(first)
    queue.begin_anew((7, 1))
    assert (second.producer, second.base_sequence, queue.next_sequence) == ((7, 1), 0, 2)
    assert second.data is not None
    header = decode_header(second.data)
    check_crc(header, second.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)
    assert [record.value for record in decode_records(bytes(second.data))] == [b"2", b"3"]
    assert queue.drain((7, 1)) is third
    assert third.base_sequence == 2


def test_another_epoch_waits_for_what_has_the_old_one() -> None:
    queue = PartitionQueue(PLACE)
    first, second = filled(queue, 2)
    queue.drain(PRODUCER)
    assert not queue.may_drain((7, 1))
    queue.acked(first, 0)
    assert queue.may_drain((7, 1))
    assert queue.drain((7, 1)) is second
    assert second.base_sequence == 0


def test_halves_take_the_place_of_a_batch() -> None:
    async def main() -> None:
        queue = PartitionQueue(PLACE)
        first, second = filled(queue, 2, records=3)
        queue.drain(PRODUCER)
        queue.drain(PRODUCER)
        halves = first.split()
        queue.replace(first, halves)
        assert [batch.base_sequence for batch in queue.in_flight] == [0, 1, 3]
        assert queue.in_flight[2] is second
        assert list(queue.waiting) == halves
        halves[0].succeed(10, -1)
        assert not first.parts[1].is_done if first.parts else False
        halves[1].succeed(11, -1)
        await first.settled()
        assert [half.metadata(0).offset for half in halves] == [10, 11]

    asyncio.run(main())


def test_an_epoch_that_is_used_up_needs_a_new_id() -> None:
    identity = Identity(None)
    identity.known(7, MAX_EPOCH - 1)
    identity.bump()
    assert identity.producer == (7, MAX_EPOCH)
    identity.bump()
    assert identity.producer == NOBODY


def test_a_failed_transaction_can_only_be_aborted_and_a_fenced_producer_nothing() -> None:
    identity = Identity("id")
    with pytest.raises(KafkaError):
        identity.go(State.OPEN)
    identity.go(State.READY)
    identity.begin()
    identity.touch(PLACE)
    assert identity.new_partitions == {PLACE}
    identity.fail(KafkaError(ErrorCode.MESSAGE_TOO_LARGE), is_fatal=False)
    assert identity.state is State.FAILED
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        identity.touch(PLACE)
    identity.go(State.ABORTING)
    identity.go(State.READY)
    identity.begin()
    identity.fail(KafkaError(ErrorCode.PRODUCER_FENCED), is_fatal=True)
    for state in (State.ABORTING, State.OPEN, State.READY):
        with pytest.raises(KafkaError):
            identity.go(state)
