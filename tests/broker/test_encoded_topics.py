"""Topics encoded by hand are what the codec makes of the same facts, whatever the state of the brokers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.broker.encoded_topics import DESCRIBE_TOPIC_PARTITIONS, EncodedTopics, metadata_form
from barnabas.metadata.brokers import Broker, Endpoint
from barnabas.metadata.pmap import PMap
from barnabas.metadata.topics import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR, Partition, Topic
from barnabas.wire import Uuid
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from barnabas.wire.messages.metadata import MetadataResponse

IDS = st.integers(1, 4)
DIRECTORIES = [Uuid(b"x" * 16), Uuid(b"y" * 16)]
LISTENER = "L"


@st.composite
def brokers(draw: st.DrawFn) -> PMap[int, Broker]:
    found = {}
    for broker_id in draw(st.sets(IDS)):
        listeners = PMap({LISTENER: Endpoint(LISTENER, "h", 1, 0)} if draw(st.booleans()) else {})
        log_dirs = tuple(draw(st.lists(st.sampled_from(DIRECTORIES), unique=True)))
        fenced = draw(st.booleans())
        found[broker_id] = Broker(broker_id, 1, Uuid(16), listeners, PMap(), None, fenced, False, False, log_dirs, None)
    return PMap(found)


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    some = st.lists(IDS, unique=True, max_size=4).map(tuple)
    directory = st.sampled_from([*DIRECTORIES, LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR])
    partitions = []
    for _ in range(draw(st.integers(0, 4))):
        replicas = draw(some)
        directories = tuple(draw(directory) for _ in replicas)
        leader, epoch = draw(st.sampled_from([-1, *replicas])), draw(st.integers(0, 2**31 - 1))
        partitions.append(
            Partition(replicas, directories, draw(some), (), (), leader, 0, epoch, 0, draw(some), draw(some))
        )
    name = draw(st.sampled_from(["__consumer_offsets", "t" * 249, "a"]))
    return Topic(name, Uuid(b"i" * 16), tuple(partitions))


def reachable(known: PMap[int, Broker], broker_id: int) -> bool:
    return broker_id in known and not known[broker_id].fenced and LISTENER in known[broker_id].listeners


def offline(known: PMap[int, Broker], partition: Partition) -> list[int]:
    def is_online(broker_id: int, directory: Uuid) -> bool:
        if directory == LOST_DIR or not reachable(known, broker_id):
            return False
        log_dirs = known[broker_id].log_dirs
        return directory in (MIGRATING_DIR, UNASSIGNED_DIR) or not log_dirs or directory in log_dirs

    pairs = zip(partition.replicas, partition.directories, strict=True)
    return [broker_id for broker_id, directory in pairs if not is_online(broker_id, directory)]


def metadata_partition(known: PMap[int, Broker], version: int, index: int, partition: Partition) -> Any:
    shown = [[n for n in ids if version > 0 or reachable(known, n)] for ids in (partition.replicas, partition.isr)]
    error, leader = 0, partition.leader
    if leader not in known:
        error, leader = 5, -1
    elif LISTENER not in known[leader].listeners:
        error, leader = 72 if version >= 6 else 5, -1
    elif [*map(len, shown)] != [len(partition.replicas), len(partition.isr)]:
        error = 9
    return MetadataResponse.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=shown[0],
        isr_nodes=shown[1],
        offline_replicas=offline(known, partition),
    )


@pytest.mark.parametrize("version", range(14))
@given(known=brokers(), topic=topics(), operations=st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=15, deadline=None)
def test_a_topic_in_metadata(version: int, known: PMap[int, Broker], topic: Topic, operations: int) -> None:
    view = EncodedTopics().view(metadata_form(version), LISTENER, known)
    body = b"".join((view.length(1), view.topic(topic), view.ending(operations)))
    expected = MetadataResponse.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name == "__consumer_offsets",
        partitions=[metadata_partition(known, version, n, each) for n, each in enumerate(topic.partitions)],
        topic_authorized_operations=operations if version >= 8 else -(2**31),
    )
    assert body in wire.encode(MetadataResponse(topics=[expected]), version)


@given(known=brokers(), topic=topics(), start=st.integers(0, 6), count=st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_a_page_of_a_topic_in_describe_topic_partitions(
    known: PMap[int, Broker], topic: Topic, start: int, count: int
) -> None:
    view = EncodedTopics().view(DESCRIBE_TOPIC_PARTITIONS, LISTENER, known)
    end = min(start + count, len(topic.partitions))
    body = b"".join((view.length(1), view.page(topic, start, end), view.ending(7)))
    rows = []
    for index in range(start, end):
        partition = topic.partitions[index]
        leads = partition.leader in known and LISTENER in known[partition.leader].listeners
        rows.append(
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=partition.leader if leads else -1,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=offline(known, partition),
            )
        )
    expected = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name == "__consumer_offsets",
        partitions=rows,
        topic_authorized_operations=7,
    )
    assert body in wire.encode(DescribeTopicPartitionsResponse(topics=[expected]), 0)
