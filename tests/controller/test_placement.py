"""Where replicas go: spread over racks, then over brokers, and the same again from the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from barnabas.controller.placement import UsableBroker, default_directory, place, usable_brokers
from barnabas.metadata.topics import MIGRATING_DIR, UNASSIGNED_DIR
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from tests.broker.harness import register_broker
from tests.controller.situations import Story


def cluster(brokers: int, racks: int) -> list[UsableBroker]:
    """Broker n stands in rack n modulo the number of racks; one rack is none."""
    return [UsableBroker(n, None if racks == 1 else f"rack-{n % racks}") for n in range(brokers)]


def spread(values: Sequence[int]) -> int:
    return max(values) - min(values)


def counts(placed: Sequence[tuple[int, ...]], brokers: Sequence[int]) -> tuple[list[int], list[int]]:
    """How often each broker leads, and how often it has a replica."""
    leaders = Counter(replicas[0] for replicas in placed)
    everyone = Counter(replica for replicas in placed for replica in replicas)
    return [leaders[broker] for broker in brokers], [everyone[broker] for broker in brokers]


@pytest.mark.parametrize("racks", range(1, 10))
def test_replicas_are_spread_over_racks_and_over_the_brokers_of_each_rack(racks: int) -> None:
    for brokers in range(racks, 61):
        usable = cluster(brokers, racks)
        for replication_factor in {min(brokers, wanted) for wanted in (1, 2, 3, 5)}:
            placed = place(usable, 3 * brokers, replication_factor, Random(brokers))
            assert len(placed) == 3 * brokers
            for replicas in placed:
                assert len(set(replicas)) == replication_factor
                assert len({replica % racks for replica in replicas}) == min(replication_factor, racks)
            for rack in range(racks):
                leads, has = counts(placed, range(rack, brokers, racks))
                assert spread(leads) <= 1
                assert spread(has) <= 3


@pytest.mark.parametrize("racks", range(1, 10))
def test_in_racks_of_one_size_every_broker_gets_the_same(racks: int) -> None:
    for brokers in range(racks, 61, racks):
        replication_factor = min(3, brokers)
        placed = place(cluster(brokers, racks), 2 * brokers, replication_factor, Random(racks))
        leads, has = counts(placed, range(brokers))
        assert (leads, has) == ([2] * brokers, [2 * replication_factor] * brokers)


def test_replicas_of_one_partition_are_as_even_over_racks_as_the_racks_allow() -> None:
    usable = [UsableBroker(n, "a" if n < 5 else "b" if n < 7 else "c") for n in range(8)]
    for replicas in place(usable, 50, 6, Random(4)):
        assert Counter(usable[replica].rack for replica in replicas) == {"a": 3, "b": 2, "c": 1}


def test_small_topics_do_not_meet_on_the_same_brokers() -> None:
    random = Random(9)
    placed = [place(cluster(12, 3), 1, 3, random)[0] for _ in range(600)]
    leads, has = counts(placed, range(12))
    assert min(leads) > 25
    assert min(has) > 100


def test_when_a_broker_fails_its_partitions_are_taken_over_by_many() -> None:
    placed = place(cluster(10, 1), 1000, 3, Random(2))
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert len(heirs) == 9
    assert max(heirs.values()) < 30


def test_the_same_seed_places_the_same() -> None:
    usable = cluster(7, 3)
    placed = place(usable, 40, 3, Random(5))
    assert place(list(reversed(usable)), 40, 3, Random(5)) == placed
    assert place(usable, 40, 3, Random(6)) != placed


def test_fenced_brokers_never_lead_and_come_last_in_their_rack() -> None:
    usable = [UsableBroker(n, f"rack-{n % 2}", fenced=n >= 4) for n in range(8)]
    for replicas in place(usable, 100, 4, Random(1)):
        assert set(replicas) == {0, 1, 2, 3}
    for replicas in place(usable, 100, 6, Random(1)):
        assert replicas[0] < 4
        assert set(replicas) > {0, 1, 2, 3}
    leads, has = counts(place(usable, 100, 6, Random(1)), range(8))
    assert leads == [25, 25, 25, 25, 0, 0, 0, 0]
    assert has[:4] == [100] * 4
    assert spread(has[4:]) <= 1


def test_a_rack_whose_brokers_are_all_fenced_still_gets_a_replica_of_each_partition() -> None:
    usable = [UsableBroker(0, "a"), UsableBroker(1, "b", fenced=True), UsableBroker(2, "c")]
    for replicas in place(usable, 20, 3, Random(1)):
        assert replicas[0] in (0, 2)
        assert set(replicas) == {0, 1, 2}


@pytest.mark.parametrize(
    ("usable", "replication_factor", "message"),
    [
        (cluster(3, 1), 0, "Invalid replication factor 0: the replication factor must be positive."),
        (
            [UsableBroker(1, fenced=True)],
            1,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            cluster(3, 3),
            4,
            "The target replication factor of 4 cannot be reached because only 3 broker(s) are registered or some "
            "brokers have all their log directories cordoned.",
        ),
    ],
)
def test_what_cannot_be_placed_is_an_invalid_replication_factor(
    usable: list[UsableBroker], replication_factor: int, message: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        place(usable, 1, replication_factor, Random(1))
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)


def test_brokers_that_shut_down_or_have_only_cordoned_directories_are_not_usable() -> None:
    story = Story(brokers=5)
    story.apply(
        [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, in_controlled_shutdown=1),
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, cordoned_log_dirs=[Uuid(b"\2\1" * 8)]),
            BrokerRegistrationChangeRecord(
                broker_id=3, broker_epoch=103, cordoned_log_dirs=[Uuid(b"other" + b"!" * 11)]
            ),
            BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=104, fenced=1),
        ]
    )
    assert usable_brokers(story.image) == [UsableBroker(3), UsableBroker(4, fenced=True), UsableBroker(5)]


def test_a_replica_goes_into_the_directory_that_a_broker_has_but_one_of() -> None:
    def with_dirs(broker_id: int, *dirs: bytes) -> RegisterBrokerRecord:
        record = register_broker(broker_id)
        record.log_dirs = [Uuid(each * 16) for each in dirs]
        return record

    records = [with_dirs(1, b"a"), with_dirs(2, b"b", b"c"), with_dirs(3)]
    image = Story(records, brokers=0).image
    assert [default_directory(image, n) for n in (1, 2, 3, 4)] == [
        Uuid(b"a" * 16),
        UNASSIGNED_DIR,
        MIGRATING_DIR,
        UNASSIGNED_DIR,
    ]
    assert default_directory(Story(records, brokers=0, metadata_version=16).image, 1) == MIGRATING_DIR
