"""kafka-python's KafkaAdminClient against a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    NoError,
    NoReassignmentInProgressError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin.topics import ElectionType
from kafka.protocol.api_key import ApiKey
from tools.apache_kafka import Barnabas

FreshName = Callable[[str], str]


@pytest.fixture
def admin(node: Barnabas) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    yield client
    client.close()


def created(admin: KafkaAdminClient, name: str, partitions: int = 1, **configs: str) -> str:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
    (row,) = admin.create_topics({name: wanted})["topics"]
    assert (row["error_code"], row["num_partitions"], row["replication_factor"]) == (0, partitions, 1)
    return name


def modified(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    found = admin.describe_configs([ConfigResource("TOPIC", topic)])["topic"][topic]
    assert {entry["config_source"] for entry in found.values()} <= {"DYNAMIC_TOPIC_CONFIG"}
    return {name: entry["value"] for name, entry in found.items()}


def test_the_handshake_learns_the_versions_of_each_api(admin: KafkaAdminClient) -> None:
    versions = admin.api_versions()
    assert versions[ApiKey.ApiVersions] == (0, 4)
    assert versions[ApiKey.CreateTopics] == (0, 7)
    assert versions[ApiKey.Metadata] == (0, 13)


def test_describe_cluster_tells_the_node(node: Barnabas, admin: KafkaAdminClient) -> None:
    described = admin.describe_cluster()
    assert described["controller_id"] == 1
    (broker,) = described["brokers"]
    assert (broker["broker_id"], (broker["host"], broker["port"]), broker["is_fenced"]) == (1, node.address, False)


def test_a_created_topic_is_listed_and_described(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("made"), 3, retention_ms="1000")
    admin.wait_for_topics([topic])
    assert topic in admin.list_topics()
    (found,) = admin.describe_topics([topic])
    assert [(p["partition_index"], p["leader_id"], p["isr_nodes"]) for p in found["partitions"]] == [
        (0, 1, [1]),
        (1, 1, [1]),
        (2, 1, [1]),
    ]
    assert modified(admin, topic) == {"retention.ms": "1000"}


def test_describe_topic_partitions_goes_page_by_page(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("paged"), 3)
    first = admin.describe_topic_partitions([topic], response_partition_limit=2)
    assert [p["partition_index"] for p in first["topics"][0]["partitions"]] == [0, 1]
    assert first["next_cursor"] == {"topic_name": topic, "partition_index": 2}
    second = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=first["next_cursor"])
    assert [p["partition_index"] for p in second["topics"][0]["partitions"]] == [2]
    assert second["next_cursor"] is None


def test_refusals_raise_the_error_of_their_code(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("once"), 2)
    with pytest.raises(TopicAlreadyExistsError, match="already exists"):
        admin.create_topics([topic])
    with pytest.raises(InvalidTopicError):
        admin.create_topics(["not a name"])
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topics({fresh_name("wide"): {"num_partitions": 1, "replication_factor": 3}})
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 1})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([fresh_name("missing")])


def test_topics_are_deleted_by_name(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("deleted"))
    (row,) = admin.delete_topics([topic])["topics"]
    assert (row["name"], row["error_code"]) == (topic, 0)
    assert topic not in admin.list_topics()


def test_partitions_are_added(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("grown"))
    admin.create_partitions({topic: 4})
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 4


def test_configs_are_set_appended_and_reset(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("changed"))
    changes = {"retention.ms": "5", "cleanup.policy": ("APPEND", "compact")}
    assert admin.alter_configs([ConfigResource("TOPIC", topic, changes)]) == {"topic": {topic: "OK"}}
    assert modified(admin, topic) == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    admin.reset_configs([ConfigResource("TOPIC", topic, ["retention.ms"])])
    assert modified(admin, topic) == {"cleanup.policy": "delete,compact"}
    refused = admin.alter_configs([ConfigResource("TOPIC", topic, {"retention.ms": "soon"})])
    assert "InvalidConfigurationError: Invalid value soon for configuration retention.ms" in refused["topic"][topic]


def test_config_resources_are_listed(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("listed"))
    found = admin.list_config_resources()
    assert topic in found["topic"]
    assert found["broker"] == ["1"]


def test_acls_are_created_described_and_deleted(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = fresh_name("guarded")
    allowed = ACL(
        "User:carol", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic)
    )
    pattern = ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.MATCH)
    every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
    assert admin.create_acls([allowed]) == {"succeeded": [allowed], "failed": []}
    assert admin.describe_acls(every) == ([allowed], NoError)
    ((_, deleted, error),) = admin.delete_acls([every])
    assert (deleted, error) == ([allowed], NoError)
    assert admin.describe_acls(every) == ([], NoError)


def test_features_are_described_with_their_range(admin: KafkaAdminClient) -> None:
    features = admin.describe_features()
    assert features["metadata.version"]["supported"] == (7, 30)
    assert features["kraft.version"]["finalized"] == (1, 1)


def test_scram_users_are_stored_described_and_deleted(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    user = fresh_name("user")
    stored = UserScramCredentialUpsertion(user, "SCRAM_SHA_512", "secret")
    assert admin.alter_user_scram_credentials([stored]) == {user: None}
    found = admin.describe_user_scram_credentials([user])[user]
    assert [(info["mechanism"].name, info["iterations"]) for info in found["credential_infos"]] == [
        ("SCRAM_SHA_512", 4096)
    ]
    gone = UserScramCredentialDeletion(user, "SCRAM_SHA_512")
    assert admin.alter_user_scram_credentials([gone]) == {user: None}
    assert user not in admin.describe_user_scram_credentials()


def test_reassignments_and_elections_have_nothing_to_do(admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    topic = created(admin, fresh_name("steady"))
    assert admin.list_partition_reassignments() == {}
    partition = TopicPartition(topic, 0)
    assert admin.alter_partition_reassignments({partition: None}) == {partition: NoReassignmentInProgressError}
    elected = admin.elect_leaders(ElectionType.PREFERRED, {topic: [0]})
    ((row,),) = [each.partition_result for each in elected.replica_election_results]
    assert row.error_code == 84  # ELECTION_NOT_NEEDED


def test_the_quorum_is_described(admin: KafkaAdminClient) -> None:
    described = admin.describe_metadata_quorum()
    ((partition,),) = [topic["partitions"] for topic in described["topics"]]
    assert partition["leader_id"] == 1
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [1]
    assert partition["high_watermark"] == partition["current_voters"][0]["log_end_offset"] > 0


def test_the_log_dir_is_described_with_its_partitions(
    node: Barnabas, admin: KafkaAdminClient, fresh_name: FreshName
) -> None:
    topic = created(admin, fresh_name("stored"), 2)
    ((log_dir,),) = [broker["log_dirs"] for broker in admin.describe_log_dirs([topic])]
    assert (log_dir["error_code"], log_dir["log_dir"]) == (0, str(node.directory / "data"))
    (found,) = log_dir["topics"]
    assert (found["name"], sorted(p["partition_index"] for p in found["partitions"])) == (topic, [0, 1])
    assert log_dir["total_bytes"] >= log_dir["usable_bytes"] > 0
