"""librdkafka's AdminClient, through confluent-kafka, against a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tools.apache_kafka import Barnabas

WAIT_S = 10
FreshName = Callable[[str], str]


@pytest.fixture
def admin(node: Barnabas) -> Iterator[AdminClient]:
    yield AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})


def result_of(futures: Any) -> Any:
    """The result of the one future in a mapping; raises what the node refused it with."""
    (future,) = futures.values()
    return future.result(WAIT_S)


def refusal(futures: Any) -> KafkaError:
    with pytest.raises(KafkaException) as raised:
        result_of(futures)
    error = raised.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def created(admin: AdminClient, name: str, partitions: int = 1, **settings: str) -> str:
    assert result_of(admin.create_topics([NewTopic(name, partitions, 1, config=dots(settings))])) is None
    return name


def dots(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def topic_resource(name: str, *entries: ConfigEntry) -> ConfigResource:
    return ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=list(entries))


def change(name: str, value: str | None, how: AlterConfigOpType = AlterConfigOpType.SET) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=how)


def partitions_of(admin: AdminClient, topic: str) -> dict[int, tuple[int, list[int], list[int]]]:
    found = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    assert found.error is None
    return {i: (each.leader, each.replicas, each.isrs) for i, each in found.partitions.items()}


def test_metadata_bootstrap_finds_the_node_and_its_cluster(node: Barnabas, admin: AdminClient) -> None:
    metadata = admin.list_topics(timeout=WAIT_S)
    (broker,) = metadata.brokers.values()
    assert (broker.id, f"{broker.host}:{broker.port}") == (1, node.bootstrap)
    assert metadata.controller_id == 1
    meta_properties = (node.directory / "data" / "meta.properties").read_text()
    assert f"cluster.id={metadata.cluster_id}\n" in meta_properties


def test_describe_cluster_tells_nodes_and_authorised_operations(node: Barnabas, admin: AdminClient) -> None:
    described = admin.describe_cluster(include_authorized_operations=True).result(WAIT_S)
    assert described.cluster_id == admin.list_topics(timeout=WAIT_S).cluster_id
    assert [(each.id, each.host, each.port, each.rack) for each in described.nodes] == [(1, *node.address, None)]
    assert described.controller.id == 1
    assert {AclOperation.ALTER, AclOperation.CLUSTER_ACTION} < set(described.authorized_operations)


def test_a_created_topic_is_in_metadata_with_leaders(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("made"), 3)
    assert partitions_of(admin, topic) == {i: (1, [1], [1]) for i in range(3)}


def test_describe_topics_tells_ids_and_partitions(admin: AdminClient, fresh_name: FreshName) -> None:
    topic, missing = created(admin, fresh_name("described"), 2), fresh_name("missing")
    futures = admin.describe_topics(TopicCollection([topic, missing]), include_authorized_operations=True)
    found = futures[topic].result(WAIT_S)
    assert (found.name, found.is_internal) == (topic, False)
    assert found.topic_id.get_most_significant_bits() != 0
    assert [(each.id, each.leader.id, [r.id for r in each.isr]) for each in found.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]
    assert AclOperation.DELETE in found.authorized_operations
    assert refusal({missing: futures[missing]}).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_same_topic_twice_is_refused(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("twice"))
    error = refusal(admin.create_topics([NewTopic(topic, 1, 1)]))
    assert (error.code(), error.str()) == (KafkaError.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "settings", "code"),
    [
        ("not a name", 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
        ("no-partitions", 0, 1, {}, KafkaError.INVALID_PARTITIONS),
        ("too-many-replicas", 1, 5, {}, KafkaError.INVALID_REPLICATION_FACTOR),
        ("unknown-setting", 1, 1, {"no.such.setting": "1"}, KafkaError.INVALID_CONFIG),
        ("bad-setting", 1, 1, {"retention.ms": "soon"}, KafkaError.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_created_is_refused_with_its_reason(
    admin: AdminClient, name: str, partitions: int, replicas: int, settings: dict[str, str], code: int
) -> None:
    error = refusal(admin.create_topics([NewTopic(name, partitions, replicas, config=settings)]))
    assert error.code() == code
    assert error.str()
    assert name not in admin.list_topics(timeout=WAIT_S).topics


def test_validate_only_creates_nothing(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = fresh_name("tried")
    assert result_of(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)) is None
    assert topic not in admin.list_topics(timeout=WAIT_S).topics


def test_replicas_can_be_assigned_by_hand(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = fresh_name("assigned")
    assert result_of(admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1], [1]])])) is None
    assert partitions_of(admin, topic) == {0: (1, [1], [1]), 1: (1, [1], [1])}
    other = fresh_name("assigned")
    error = refusal(admin.create_topics([NewTopic(other, 1, replica_assignment=[[7]])]))
    assert error.code() == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_a_deleted_topic_is_gone(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("deleted"))
    assert result_of(admin.delete_topics([topic])) is None
    assert topic not in admin.list_topics(timeout=WAIT_S).topics
    assert refusal(admin.delete_topics([topic])).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added_and_never_taken_away(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("grown"), 2)
    assert result_of(admin.create_partitions([NewPartitions(topic, 5)])) is None
    assert partitions_of(admin, topic) == {i: (1, [1], [1]) for i in range(5)}
    fewer = refusal(admin.create_partitions([NewPartitions(topic, 3)]))
    assert fewer.code() == KafkaError.INVALID_PARTITIONS
    assert len(partitions_of(admin, topic)) == 5
    unknown = refusal(admin.create_partitions([NewPartitions(fresh_name("missing"), 3)]))
    assert unknown.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def described_configs(admin: AdminClient, resource: ConfigResource) -> dict[str, Any]:
    found: dict[str, Any] = result_of(admin.describe_configs([resource]))
    return found


def test_configs_given_at_creation_are_described_with_their_source(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("configured"), cleanup_policy="compact", retention_ms="1000")
    configs = described_configs(admin, topic_resource(topic))
    policy, segment = configs["cleanup.policy"], configs["segment.bytes"]
    assert (policy.value, policy.source, policy.is_default) == (
        "compact",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        False,
    )
    assert (segment.value, segment.source, segment.is_default) == (
        "1073741824",
        ConfigSource.DEFAULT_CONFIG.value,
        True,
    )
    assert configs["retention.ms"].value == "1000"


def test_incremental_changes_set_append_subtract_and_delete(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("changed"), retention_ms="1000")

    def changed(*entries: ConfigEntry) -> dict[str, ConfigEntry]:
        assert result_of(admin.incremental_alter_configs([topic_resource(topic, *entries)])) is None
        return described_configs(admin, topic_resource(topic))

    assert changed(change("max.message.bytes", "4242"))["max.message.bytes"].value == "4242"
    appended = changed(change("cleanup.policy", "compact", AlterConfigOpType.APPEND))
    assert appended["cleanup.policy"].value == "delete,compact"
    subtracted = changed(change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT))
    assert subtracted["cleanup.policy"].value == "compact"
    dropped = changed(change("retention.ms", None, AlterConfigOpType.DELETE))
    assert (dropped["retention.ms"].value, dropped["retention.ms"].is_default) == ("604800000", True)


def test_a_refused_change_leaves_the_config_as_it_was(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("unchanged"), retention_ms="1000")
    entries = [change("retention.ms", "2000"), change("segment.bytes", "many")]
    error = refusal(admin.incremental_alter_configs([topic_resource(topic, *entries)]))
    assert error.code() == KafkaError.INVALID_CONFIG
    assert described_configs(admin, topic_resource(topic))["retention.ms"].value == "1000"
    missing = topic_resource(fresh_name("missing"), change("retention.ms", "1"))
    assert refusal(admin.incremental_alter_configs([missing])).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_alter_configs_replaces_all_that_was_set(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("replaced"), retention_ms="1000")
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"segment.bytes": "1048576"})
    with pytest.deprecated_call():
        futures = admin.alter_configs([resource])
    assert result_of(futures) is None
    configs = described_configs(admin, topic_resource(topic))
    assert (configs["segment.bytes"].value, configs["retention.ms"].value) == ("1048576", "604800000")


def test_broker_configs_are_described_and_changed(node: Barnabas, admin: AdminClient) -> None:
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    configs = described_configs(admin, broker)
    assert (configs["node.id"].value, configs["node.id"].is_read_only) == ("1", True)
    assert configs["log.dirs"].value == str(node.directory / "data")
    wanted = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[change("log.cleaner.threads", "2")])
    assert result_of(admin.incremental_alter_configs([wanted])) is None
    changed = described_configs(admin, broker)["log.cleaner.threads"]
    assert (changed.value, changed.source) == ("2", ConfigSource.DYNAMIC_BROKER_CONFIG.value)
    back = [change("log.cleaner.threads", None, AlterConfigOpType.DELETE)]
    undone = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=back)
    assert result_of(admin.incremental_alter_configs([undone])) is None
    assert described_configs(admin, broker)["log.cleaner.threads"].value == "1"


def acl(kind: Callable[..., Any], name: str | None, principal: str | None, host: str | None = "*") -> Any:
    allowed, read = AclPermissionType.ALLOW, AclOperation.READ
    return kind(ResourceType.TOPIC, name, ResourcePatternType.LITERAL, principal, host, read, allowed)


def test_acls_are_created_described_and_deleted(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = fresh_name("guarded")
    first, second = acl(AclBinding, topic, "User:alice"), acl(AclBinding, topic, "User:bob", "10.0.0.1")
    for future in admin.create_acls([first, second]).values():
        assert future.result(WAIT_S) is None
    of_topic = acl(AclBindingFilter, topic, None, None)
    assert set(admin.describe_acls(of_topic).result(WAIT_S)) == {first, second}
    of_alice = acl(AclBindingFilter, topic, "User:alice", None)
    assert set(result_of(admin.delete_acls([of_alice]))) == {first}
    assert set(admin.describe_acls(of_topic).result(WAIT_S)) == {second}


def test_scram_credentials_are_stored_described_and_deleted(admin: AdminClient, fresh_name: FreshName) -> None:
    user = fresh_name("user")
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    stored = UserScramCredentialUpsertion(user, info, b"secret", b"salt")
    assert result_of(admin.alter_user_scram_credentials([stored])) is None
    described = result_of(admin.describe_user_scram_credentials([user]))
    assert [(c.mechanism, c.iterations) for c in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 8192)
    ]
    gone = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)
    assert result_of(admin.alter_user_scram_credentials([gone])) is None
    assert refusal(admin.describe_user_scram_credentials([user])).code() == KafkaError.RESOURCE_NOT_FOUND
    too_few = UserScramCredentialUpsertion(user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10), b"secret")
    assert refusal(admin.alter_user_scram_credentials([too_few])).code() == KafkaError.UNACCEPTABLE_CREDENTIAL


def test_an_election_that_changes_nothing_says_so(admin: AdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("elected"))
    wanted = [TopicPartition(topic, 0)]
    outcome = admin.elect_leaders(ElectionType.PREFERRED, wanted).result(WAIT_S)
    (error,) = outcome.values()
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED


def test_what_was_acknowledged_is_there_after_a_restart() -> None:
    with Barnabas() as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        created(admin, "kept", 2, retention_ms="1000")
        created(admin, "dropped")
        result_of(admin.create_partitions([NewPartitions("kept", 3)]))
        result_of(admin.incremental_alter_configs([topic_resource("kept", change("segment.bytes", "1048576"))]))
        result_of(admin.delete_topics(["dropped"]))
        stored = UserScramCredentialUpsertion("ann", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"pw")
        result_of(admin.alter_user_scram_credentials([stored]))
        cluster_id = admin.list_topics(timeout=WAIT_S).cluster_id
        topic_id = result_of(admin.describe_topics(TopicCollection(["kept"]))).topic_id

        assert node.stop() == 0
        node.start()

        again = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        metadata = again.list_topics(timeout=WAIT_S)
        assert (metadata.cluster_id, set(metadata.topics)) == (cluster_id, {"kept"})
        assert partitions_of(again, "kept") == {i: (1, [1], [1]) for i in range(3)}
        assert str(result_of(again.describe_topics(TopicCollection(["kept"]))).topic_id) == str(topic_id)
        configs = described_configs(again, topic_resource("kept"))
        assert (configs["retention.ms"].value, configs["segment.bytes"].value) == ("1000", "1048576")
        described = result_of(again.describe_user_scram_credentials(["ann"]))
        assert [c.mechanism for c in described.scram_credential_infos] == [ScramMechanism.SCRAM_SHA_512]
