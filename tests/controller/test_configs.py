"""Settings are changed by decisions: records that make it true, and an outcome for each resource."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from barnabas.config import server
from barnabas.controller import configs
from barnabas.controller.configs import AlterOperation, Operations, Outcome, alter, alter_incrementally, layers_of
from barnabas.controller.situation import Situation
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

TOPIC, BROKER, CLUSTER = ConfigResource(2, "t"), ConfigResource(4, "1"), ConfigResource(4, "")
METRICS, GROUP = ConfigResource(16, "m"), ConfigResource(32, "g")
SET, DELETE, APPEND, SUBTRACT = AlterOperation
T = Uuid(b"t" * 16)


def config(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def situation(
    *records: Message,
    features: Mapping[str, int] = {"metadata.version": 30},
    properties: Mapping[str, str] = {},
) -> Situation:
    start: list[Message] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.items()]
    start += [
        RegisterBrokerRecord(broker_id=1, broker_epoch=1),
        TopicRecord(name="t", topic_id=T),
        PartitionRecord(partition_id=0, topic_id=T, replicas=[1], isr=[1], leader=1, leader_epoch=0),
    ]
    image = replay(EMPTY_IMAGE, [*start, *records], Provenance(9, 1, 0))
    return Situation(image, server.load(None, properties), 0, Random(1))


def applied(image: MetadataImage, records: list[Message]) -> MetadataImage:
    return replay(image, records, Provenance(99, 1, 0))


def change(
    at: Situation, resource: ConfigResource, operations: Operations, *, forwarded: bool = True
) -> tuple[list[Message], KafkaError | None]:
    records, outcome, _ = at_once(alter_incrementally(at, {resource: operations}, False, forwarded))
    return [record for record, _ in records], outcome[resource]


def code(error: KafkaError | None) -> ErrorCode | None:
    return None if error is None else error.code


def test_a_setting_is_set_and_unset() -> None:
    before = situation(config(TOPIC, "segment.ms", "9"))
    records, error = change(before, TOPIC, {"retention.ms": (SET, "5"), "segment.ms": (DELETE, None)})
    assert error is None
    assert records == [config(TOPIC, "retention.ms", "5"), config(TOPIC, "segment.ms", None)]
    assert dict(applied(before.image, records).config(*TOPIC)) == {"retention.ms": "5"}


def test_what_stays_the_same_is_not_written_but_for_brokers() -> None:
    before = situation(config(TOPIC, "segment.ms", "9"), config(BROKER, "a", "b"))
    assert change(before, TOPIC, {"segment.ms": (SET, "9"), "nope": (DELETE, None)}) == ([], None)
    assert change(before, BROKER, {"a": (SET, "b")}) == ([config(BROKER, "a", "b")], None)


def test_all_of_a_resource_is_replaced() -> None:
    before = situation(config(TOPIC, "segment.ms", "9"), config(TOPIC, "flush.ms", "8"))
    records, outcome, _ = at_once(alter(before, {TOPIC: {"flush.ms": "8", "retention.ms": "5"}}, False, True))
    assert outcome == {TOPIC: None}
    assert records == [(config(TOPIC, "retention.ms", "5"), 0), (config(TOPIC, "segment.ms", None), 0)]


@pytest.mark.parametrize("decide", [alter, alter_incrementally])
def test_only_validating_gives_the_outcome_without_records(decide: object) -> None:
    texts = {TOPIC: {"retention.ms": "5"}} if decide is alter else {TOPIC: {"retention.ms": (SET, "5")}}
    records, outcome, _ = at_once(decide(situation(), texts, True, True))  # type: ignore[operator]
    assert (records, outcome) == ([], {TOPIC: None})


def test_a_bad_resource_does_not_hold_up_a_good_one() -> None:
    operations = {"consumer.session.timeout.ms": (SET, "50000")}
    records, outcome, _ = at_once(
        alter_incrementally(situation(), {TOPIC: {"nope": (SET, "1")}, GROUP: operations}, False, True)
    )
    assert [code(error) for error in outcome.values()] == [ErrorCode.INVALID_CONFIG, None]
    assert [record for record, _ in records] == [config(GROUP, "consumer.session.timeout.ms", "50000")]


@pytest.mark.parametrize(
    ("old", "operation", "operand", "new"),
    [
        (None, APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "compact", "compact"),
        ("compact", APPEND, ",", "compact"),
        ("delete,compact", SUBTRACT, "delete,", "compact"),
        ("compact", SUBTRACT, "delete", "compact"),
        (None, SUBTRACT, "delete", ""),
    ],
)
def test_lists_are_changed_by_their_entries(old: str | None, operation: AlterOperation, operand: str, new: str) -> None:
    before = situation(*([] if old is None else [config(TOPIC, "cleanup.policy", old)]))
    records, error = change(before, TOPIC, {"cleanup.policy": (operation, operand)})
    assert error is None
    assert applied(before.image, records).config(*TOPIC).get("cleanup.policy", "delete") == new


@pytest.mark.parametrize("resource", [GROUP, METRICS])
def test_only_topics_and_brokers_have_lists_to_the_controller(resource: ConfigResource) -> None:
    _, error = change(situation(), resource, {"metrics": (APPEND, "x")})
    assert error is not None
    assert error.message == "Can't APPEND to key metrics because its type is not LIST."


@pytest.mark.parametrize(
    ("resource", "operations", "error_code", "message"),
    [
        (ConfigResource(2, ""), {}, 42, "Default topic resources are not allowed."),
        (ConfigResource(2, "u"), {}, 3, "The topic 'u' does not exist."),
        (ConfigResource(2, "u"), {"nope": (SET, "1")}, 40, "Unknown topic config name: nope"),
        (ConfigResource(4, "7"), {}, 102, "No node with id 7 found."),
        (ConfigResource(4, "x"), {}, 42, "Unable to parse broker name as a base 10 number."),
        (ConfigResource(4, "-7"), {}, 42, "Invalid negative broker ID."),
        (ConfigResource(16, ""), {}, 42, "Subscription name can't be empty"),
        (ConfigResource(32, ""), {}, 42, "Default group resources are not allowed."),
    ],
)
def test_what_cannot_have_settings_is_refused(
    resource: ConfigResource, operations: Operations, error_code: int, message: str
) -> None:
    records, error = change(situation(), resource, operations)
    assert error is not None
    assert (records, error.code, error.message) == ([], error_code, message)


def test_a_controller_has_settings_like_a_broker() -> None:
    assert change(situation(RegisterControllerRecord(controller_id=5)), ConfigResource(4, "5"), {}) == ([], None)
    voters = {"controller.quorum.voters": "1@a:1,6@b:1", "controller.quorum.bootstrap.servers": ""}
    assert change(situation(properties=voters), ConfigResource(4, "6"), {}) == ([], None)


def test_a_topic_is_checked_against_what_it_inherits() -> None:
    before = situation(config(CLUSTER, "log.cleaner.max.compaction.lag.ms", "7"))
    _, error = change(before, TOPIC, {"min.compaction.lag.ms": (SET, "8")})
    assert error is not None
    assert error.message == "conflict topic config setting min.compaction.lag.ms (8) > max.compaction.lag.ms (7)"


def test_a_group_is_checked_against_the_bounds_of_the_brokers() -> None:
    properties = {"group.consumer.max.session.timeout.ms": "46000"}
    _, error = change(situation(properties=properties), GROUP, {"consumer.session.timeout.ms": (SET, "47000")})
    assert code(error) is ErrorCode.INVALID_CONFIG


def test_a_value_that_grew_too_long_is_refused() -> None:
    before = situation(config(TOPIC, "leader.replication.throttled.replicas", ",".join(["0:1"] * 8000)))
    _, error = change(before, TOPIC, {"leader.replication.throttled.replicas": (APPEND, "1:" + "1" * 800)})
    assert "exceeds the maximum value size of 32767 bytes." in str(error)


ELR = {"metadata.version": 30, "eligible.leader.replicas.version": 1}


def test_while_leaders_are_chosen_by_it_the_number_in_sync_is_the_clusters_alone() -> None:
    before = situation(config(CLUSTER, "min.insync.replicas", "1"), features=ELR)
    name = "min.insync.replicas"
    assert code(change(before, BROKER, {name: (SET, "2")})[1]) is ErrorCode.INVALID_CONFIG
    assert code(change(before, BROKER, {name: (DELETE, None)})[1]) is ErrorCode.INVALID_CONFIG
    assert code(change(before, CLUSTER, {name: (DELETE, None)})[1]) is ErrorCode.INVALID_CONFIG
    assert code(at_once(alter(before, {CLUSTER: {}}, False, True)).response[CLUSTER]) is ErrorCode.INVALID_CONFIG
    records, error = change(before, CLUSTER, {name: (SET, "2")})
    assert (records, error) == ([config(CLUSTER, name, "2"), ClearElrRecord()], None)
    without = situation(config(CLUSTER, name, "1"))
    assert change(without, CLUSTER, {name: (DELETE, None)}) == ([config(CLUSTER, name, None)], None)


def test_directories_are_cordoned_through_their_broker_and_by_a_new_enough_cluster() -> None:
    before = situation(config(BROKER, "cordoned.log.dirs", "/a,/b"))
    more, less = {"cordoned.log.dirs": (SET, "/a,/c")}, {"cordoned.log.dirs": (SET, "/a")}
    assert change(before, BROKER, more)[1] is None
    assert code(change(before, BROKER, more, forwarded=False)[1]) is ErrorCode.INVALID_CONFIG
    assert change(before, BROKER, less, forwarded=False)[1] is None
    old = situation(features={"metadata.version": 29})
    assert code(change(old, BROKER, less)[1]) is ErrorCode.INVALID_CONFIG


def test_more_records_than_one_batch_holds_fail_together() -> None:
    def changes(count: int) -> dict[ConfigResource, Operations]:
        return {CLUSTER: {f"setting.{at}": (SET, "1") for at in range(count)}, TOPIC: {"flush.ms": (SET, "1")}}

    outcome: Outcome
    records, outcome, _ = at_once(alter_incrementally(situation(), changes(configs.MAX_RECORDS - 1), False, True))
    assert (len(records), outcome) == (configs.MAX_RECORDS, {CLUSTER: None, TOPIC: None})
    with pytest.raises(KafkaError, match="excessively large") as refused:
        at_once(alter_incrementally(situation(), changes(configs.MAX_RECORDS), False, True))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_of_what_is_set_for_a_node_only_that_counts_which_it_takes() -> None:
    at = situation(
        config(BROKER, "log.dirs", "/x"),
        config(BROKER, "ssl.keystore.location", "/x"),
        config(BROKER, "num.io.threads", "many"),
        config(BROKER, "listeners", "PLAINTEXT://:1"),
        config(BROKER, "unknown", "1"),
        config(CLUSTER, "listeners", "PLAINTEXT://:1"),
        config(CLUSTER, "num.io.threads", "9"),
    )
    layers = layers_of(at.image, at.config)
    assert layers.broker == {"listeners": "PLAINTEXT://:1", "unknown": "1"}
    assert layers.default == {"num.io.threads": "9"}
