"""Topics created, enlarged and deleted, as records and as what the image becomes."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.controller import topics
from barnabas.metadata.topics import UNASSIGNED_DIR
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.controller.situations import TOPIC, Story, partition, topic

More = CreatePartitionsRequest.CreatePartitionsTopic


def new(name: str = "new", partitions: int = -1, replication_factor: int = -1, **more: Any) -> Any:
    """A topic to create; `assign` gives the replicas of each partition, `configs` the settings."""
    assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in (more.get("assign") or {}).items()
    ]
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=n, value=v) for n, v in more.get("configs", {}).items()]
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        configs=configs,
    )


def error_of(story: Story, wanted: Any) -> tuple[int, str | None]:
    (row,) = story.decide(topics.create, [wanted]).answers
    assert story.last == []
    assert (row.num_partitions, row.replication_factor, row.configs) == (-1, -1, [])
    return row.error_code, row.error_message


def directory(broker_id: int) -> Uuid:
    return Uuid(bytes([broker_id, 1]) * 8)


def test_a_topic_is_its_record_then_its_settings_then_its_partitions() -> None:
    story = Story()
    wanted = new(assign={0: [3, 1], 1: [1, 2]}, configs={"retention.ms": "5", "min.insync.replicas": "2"})
    (row,) = story.decide(topics.create, [wanted]).answers
    topic_id = row.topic_id
    assert row.error_code == 0
    assert row.error_message is None

    def partition_record(index: int, replicas: list[int]) -> PartitionRecord:
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory(replica) for replica in replicas],
        )

    assert story.last == [
        (TopicRecord(name="new", topic_id=topic_id), 0),
        (ConfigRecord(resource_type=2, resource_name="new", name="retention.ms", value="5"), 0),
        (ConfigRecord(resource_type=2, resource_name="new", name="min.insync.replicas", value="2"), 0),
        (ClearElrRecord(topic_name="new"), 0),
        (partition_record(0, [3, 1]), 2),
        (partition_record(1, [1, 2]), 2),
    ]
    assert dict(story.image.config(2, "new")) == {"retention.ms": "5", "min.insync.replicas": "2"}


def test_without_eligible_leader_replicas_there_is_nothing_to_clear() -> None:
    story = Story(elr=False)
    story.decide(topics.create, [new(configs={"min.insync.replicas": "2"})])
    assert not any(isinstance(record, ClearElrRecord) for record in story.written)


@pytest.mark.parametrize(("metadata_version", "record_version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_partition_records_are_as_new_as_the_metadata_version_allows(
    metadata_version: int, record_version: int
) -> None:
    story = Story(metadata_version=metadata_version, elr=False)
    story.decide(topics.create, [new(partitions=1, replication_factor=1)])
    record, version = story.last[-1]
    assert version == record_version
    assert isinstance(record, PartitionRecord)
    assert record.directories == ([directory(record.leader)] if record_version else [])


def test_numbers_that_are_not_given_come_from_the_settings() -> None:
    story = Story(properties={"num.partitions": "3", "default.replication.factor": "2"})
    (row,) = story.decide(topics.create, [new()], {"new"}).answers
    made = story.image.topics.get("new")
    assert made is not None
    assert [len(each.replicas) for each in made.partitions] == [2, 2, 2]
    assert (row.num_partitions, row.replication_factor) == (3, 2)


def test_the_leader_and_the_in_sync_replicas_are_those_that_are_active() -> None:
    story = Story()
    story.apply(
        [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=1),
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, in_controlled_shutdown=1),
        ]
    )
    story.decide(topics.create, [new(assign={0: [1, 2, 4, 3]}), new("placed", 5, 3)])
    made = story.image.topics.get("new")
    assert made is not None
    assert (made.partitions[0].replicas, made.partitions[0].isr, made.partitions[0].leader) == ((1, 2, 4, 3), (4, 3), 4)
    placed = story.image.topics.get("placed")
    assert placed is not None
    for each in placed.partitions:
        assert set(each.replicas) == {1, 3, 4}
        assert set(each.isr) == {3, 4}
        assert each.leader == each.replicas[0]


def test_a_broker_with_several_directories_chooses_itself() -> None:
    story = Story()
    two = [directory(1), Uuid(b"x" * 16)]
    story.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, log_dirs=two)])
    story.decide(topics.create, [new(assign={0: [1, 2]})])
    made = story.image.topics.get("new")
    assert made is not None
    assert made.partitions[0].directories == (UNASSIGNED_DIR, directory(2))


def test_of_several_faults_the_first_in_kafka_s_order_is_told() -> None:
    story = Story([*topic(partition([1]), name="t.x"), *topic(partition([1]), name="a", topic_id=Uuid(b"a" * 16))])
    bad = {"configs": {"retention.ms": "x"}}
    codes = [
        error_of(story, new("a", 0, 0, **bad))[0],
        error_of(story, new("bad name", 0, 0, **bad))[0],
        error_of(story, new("t_x", 0, 0, **bad))[0],
        error_of(story, new("new", 0, 0, **bad))[0],
        error_of(story, new("new", 0, 0))[0],
        error_of(story, new("new", 0, 9))[0],
        error_of(story, new("new", 1, 9))[0],
    ]
    assert codes == [36, 17, 17, 40, 38, 37, 38]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"no.such": "1"}, "Unknown topic config name: no.such"),
        (
            {"retention.ms": None, "segment.ms": None},
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
        ),
        (
            {"min.compaction.lag.ms": "501"},
            "conflict topic config setting min.compaction.lag.ms (501) > max.compaction.lag.ms (500)",
        ),
        (
            {"cleanup.policy": "x" * 32768},
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_settings_are_checked_alone_and_together(configs: dict[str, str | None], message: str) -> None:
    story = Story(properties={"log.cleaner.max.compaction.lag.ms": "500"})
    assert error_of(story, new(partitions=1, replication_factor=1, configs=configs)) == (40, message)


def test_settings_in_force_are_shown_with_the_place_that_gave_them() -> None:
    story = Story(properties={"log.retention.hours": "2", "log.segment.bytes": "2000000", "node.id": "1"})
    story.apply(
        [
            ConfigRecord(resource_type=4, resource_name="", name="log.segment.bytes", value="3000000"),
            ConfigRecord(resource_type=4, resource_name="1", name="log.retention.bytes", value="7"),
            ConfigRecord(resource_type=4, resource_name="2", name="log.retention.bytes", value="8"),
        ]
    )
    wanted = [new("a", configs={"cleanup.policy": " compact"}), new("b", configs={"internal.segment.bytes": "64"})]
    a, b = story.decide(topics.create, wanted, {"a", "b"}).answers
    shown = {each.name: (each.value, each.config_source) for each in a.configs or ()}
    assert list(shown) == sorted(shown)
    assert shown["cleanup.policy"] == (" compact", 1)
    assert shown["retention.bytes"] == ("7", 2)
    assert shown["segment.bytes"] == ("3000000", 3)
    assert shown["retention.ms"] == ("7200000", 4)
    assert shown["flush.ms"] == ("9223372036854775807", 5)
    assert "internal.segment.bytes" not in shown
    assert {each.name for each in b.configs or ()} - set(shown) == {"internal.segment.bytes"}


def test_who_may_not_describe_a_new_topic_is_not_told_its_settings() -> None:
    (row,) = Story().decide(topics.create, [new()]).answers
    assert (row.error_code, row.topic_config_error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (row.num_partitions, row.replication_factor, row.configs) == (-1, -1, [])


def test_validating_answers_the_same_and_writes_nothing() -> None:
    story = Story()
    rows = story.decide(topics.create, [new(), new("bad name")], {"new"}, True).answers
    assert [row.error_code for row in rows] == [0, 17]
    assert story.last == []
    assert "new" not in story.image.topics.ids


def test_one_bad_topic_fails_alone() -> None:
    story = Story()
    rows = story.decide(topics.create, [new("a"), new("b", 1, 9), new("c")]).answers
    assert [(row.name, row.error_code) for row in rows] == [("a", 0), ("b", 38), ("c", 0)]
    assert story.image.topics.names == ("a", "c")


def test_names_that_collide_only_within_one_request_are_both_created() -> None:
    story = Story()
    story.decide(topics.create, [new("a.b"), new("a_b")])
    assert story.image.topics.names == ("a.b", "a_b")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([new("a", 10_001, 1)], "Excessively large number of partitions per request."),
        ([new("a", 6_000, 1), new("b", 6_000, 1)], "Excessively large number of partitions per request."),
        ([new("a", 10_000, 1)], "Unable to perform excessively large batch operation."),
    ],
)
def test_too_much_at_once_is_refused_as_a_whole(wanted: list[Any], message: str) -> None:
    with pytest.raises(KafkaError) as refused:
        Story().decide(topics.create, wanted)
    assert (refused.value.code, refused.value.message) == (ErrorCode.POLICY_VIOLATION, message)


def test_partitions_are_added_behind_those_there_are() -> None:
    story = Story(topic(partition([1, 2]), partition([2, 3])))
    (row,) = story.decide(topics.create_partitions, [More(name="t", count=4, assignments=None)]).answers
    assert (row.error_code, row.error_message) == (0, None)
    made = [each for each in story.written if isinstance(each, PartitionRecord)]
    assert made == story.written
    assert [each.partition_id for each in made] == [2, 3]
    added = story.image.topics.by_id[TOPIC].partitions[2:]
    for each in added:
        assert len(each.replicas) == 2
        assert (each.leader, each.isr, each.leader_epoch, each.partition_epoch) == (
            each.replicas[0],
            each.replicas,
            0,
            0,
        )
        assert each.directories == tuple(directory(replica) for replica in each.replicas)


def assigned(*replicas: list[int]) -> list[CreatePartitionsRequest.CreatePartitionsAssignment]:
    return [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=each) for each in replicas]


def test_partitions_are_added_where_they_are_wanted_and_only_active_brokers_are_in_sync() -> None:
    story = Story(topic(partition([1, 2])))
    story.apply([BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=104, fenced=1)])
    story.decide(topics.create_partitions, [More(name="t", count=2, assignments=assigned([4, 3]))])
    added = story.partition(1)
    assert (added.replicas, added.isr, added.leader) == ((4, 3), (3,), 3)


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (More(name="u", count=3, assignments=None), 3, None),
        (More(name="t", count=1, assignments=None), 37, "Topic already has 1 partition(s)."),
        (
            More(name="t", count=0, assignments=None),
            37,
            "The topic t currently has 1 partition(s); 0 would not be an increase.",
        ),
        (
            More(name="t", count=3, assignments=assigned([1, 2])),
            39,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            More(name="t", count=2, assignments=assigned([4])),
            39,
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
            "previous partitions, which have 2 replica(s).",
        ),
        (
            More(name="t", count=2, assignments=assigned([4, 3])),
            39,
            "All brokers specified in the manual partition assignment for partition 1 are fenced or in controlled "
            "shutdown.",
        ),
        (
            More(name="wide", count=2, assignments=None),
            38,
            "The target replication factor of 5 cannot be reached because only 4 broker(s) are registered or some "
            "brokers have all their log directories cordoned.",
        ),
        (
            More(name="t", count=10_002, assignments=None),
            44,
            "Unable to perform excessively large batch operation.",
        ),
        (
            More(name="t", count=2**31 - 1, assignments=None),
            44,
            "Unable to perform excessively large batch operation.",
        ),
    ],
)
def test_partitions_that_cannot_be_added(wanted: More, code: int, message: str | None) -> None:
    story = Story(
        [*topic(partition([1, 2])), *topic(partition([1, 2, 3, 4, 5]), name="wide", topic_id=Uuid(b"w" * 16))]
    )
    story.apply([BrokerRegistrationChangeRecord(broker_id=n, broker_epoch=100 + n, fenced=1) for n in (3, 4)])
    (row,) = story.decide(topics.create_partitions, [wanted]).answers
    assert (row.error_code, row.error_message) == (code, message)
    assert story.last == []


def test_validating_more_partitions_writes_nothing() -> None:
    story = Story(topic(partition([1, 2])))
    (row,) = story.decide(topics.create_partitions, [More(name="t", count=9, assignments=None)], True).answers
    assert row.error_code == 0
    assert story.last == []


def test_a_deleted_topic_is_gone_and_an_unknown_id_is_told() -> None:
    story = Story(topic(partition([1])))
    other = Uuid(b"o" * 16)
    errors = story.decide(topics.delete, [TOPIC, other]).answers
    assert errors[TOPIC] is None
    refused = errors[other]
    assert refused is not None
    assert refused.code == ErrorCode.UNKNOWN_TOPIC_ID
    assert story.last == [(RemoveTopicRecord(topic_id=TOPIC), 0)]
    assert story.image.topics.names == ()
