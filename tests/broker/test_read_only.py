"""Directories that a node of Apache Kafka left, served without a quorum and without a byte written."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import NodeError
from barnabas.broker.read_only_node import ReadOnlyNode, find_directories, read_only_config
from barnabas.metadata.as_of import EVERYTHING, AsOf, parse_as_of
from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.clients import ask
from tests.command_line import Process
from tests.metadata import golden
from tests.storage.looking import state

CLUSTER_ID = "Z29sZC1jbHVzdGVyLTAwMQ"
META = f"node.id=1\ndirectory.id=AAAAAAAAAAEAAAAAAAAAQQ\nversion=1\ncluster.id={CLUSTER_ID}\n"
SHOWN = AsOf(offset=golden.expected()["metadata_offset_before"] - 1)
LISTENERS = "PLAINTEXT://127.0.0.1:0"
POLICY_VIOLATION = ErrorCode.POLICY_VIOLATION


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The log dir of node 1 with its metadata log."""
    log_dir = tmp_path / "node1"
    metadata = log_dir / "__cluster_metadata-0"
    metadata.mkdir(parents=True)
    (log_dir / "meta.properties").write_text(META)
    for name, content in golden.files().items():
        (metadata / name).write_bytes(content)
    return log_dir


class Asker:
    def __init__(self, node: ReadOnlyNode) -> None:
        self.node = node

    async def ask(self, request: Message, version: int, listener: str = "PLAINTEXT") -> Any:
        return await ask(self.node.addresses[listener], request, version)


@contextlib.asynccontextmanager
async def served(*dirs: Path, as_of: AsOf = EVERYTHING, **overrides: str) -> AsyncIterator[Asker]:
    found = find_directories(dirs)
    config = read_only_config(found, {"listeners": LISTENERS, **overrides})
    node = ReadOnlyNode(found, config, as_of)
    await node.start()
    try:
        yield Asker(node)
    finally:
        await node.stop()


def ask_once(log_dir: Path, request: Message, version: int, as_of: AsOf = SHOWN, **overrides: str) -> Any:
    async def run() -> Any:
        async with served(log_dir, as_of=as_of, **overrides) as asker:
            return await asker.ask(request, version)

    return asyncio.run(run())


# --- what the cluster showed


def test_topics_and_partitions_are_what_the_cluster_showed(directory: Path) -> None:
    names = [topic["name"] for topic in golden.expected()["topics"]]
    wanted = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    response = ask_once(directory, DescribeTopicPartitionsRequest(topics=wanted), 0)
    shown = [
        {
            "name": topic.name,
            "topicId": str(topic.topic_id),
            "partitions": [
                [
                    each.partition_index,
                    each.leader_id,
                    each.leader_epoch,
                    each.replica_nodes,
                    sorted(each.isr_nodes),
                    each.eligible_leader_replicas or [],
                    each.last_known_elr or [],
                ]
                for each in topic.partitions
            ],
        }
        for topic in response.topics
    ]
    theirs = [
        {**topic, "partitions": [[*row[:4], sorted(row[4]), *row[5:]] for row in topic["partitions"]]}
        for topic in golden.expected()["topics"]
    ]
    assert shown == theirs
    assert {each.error_code for topic in response.topics for each in topic.partitions} == {0}


def test_settings_are_what_the_cluster_showed(directory: Path) -> None:
    expected = golden.expected()
    resources = [(2, name, 1, config) for name, config in expected["topic_configs"].items()]
    sources = {"16": 7, "32": 8}
    for key, config in expected["other_configs"].items():
        kind, _, name = key.partition(":")
        if kind in sources:
            resources.append((int(kind), name, sources[kind], config["set"]))
    resources.append((4, "", 3, expected["other_configs"]["4:"]["default"]))
    resources.append((4, "1", 2, expected["other_configs"]["4:1"]["set"]))
    wanted = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name, _, _ in resources
    ]
    response = ask_once(directory, DescribeConfigsRequest(resources=wanted), 4)
    for (kind, name, source, config), result in zip(resources, response.results, strict=True):
        assert (result.resource_type, result.resource_name, result.error_code) == (kind, name, 0)
        assert {
            row.name: row.value for row in result.configs if row.config_source == source and not row.is_sensitive
        } == config, (kind, name)


def test_acls_are_what_the_cluster_showed(directory: Path) -> None:
    everything = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    response = ask_once(directory, everything, 3)
    mine = {
        (ResourceType(r.resource_type).name, r.resource_name, PatternType(r.pattern_type).name): sorted(
            (a.principal, a.host, AclOperation(a.operation).name, AclPermissionType(a.permission_type).name)
            for a in r.acls
        )
        for r in response.resources
    }
    theirs = {
        (r["resource_type"], r["name"], r["pattern_type"]): sorted(
            (a["principal"], a["host"], a["operation"], a["permission"]) for a in r["acls"]
        )
        for r in golden.expected()["acls"]
    }
    assert mine == theirs


def test_quotas_are_what_the_cluster_showed(directory: Path) -> None:
    response = ask_once(directory, DescribeClientQuotasRequest(), 1)

    def key(entity: list[tuple[str, str | None]], values: dict[str, float]) -> Any:
        return sorted((kind, name or "<default>") for kind, name in entity), sorted(values.items())

    mine = [
        key([(e.entity_type, e.entity_name) for e in entry.entity], {v.key: v.value for v in entry.values})
        for entry in response.entries
    ]
    theirs = [
        key(
            [(e["entityType"], e["entityName"]) for e in entry["entity"]],
            {v["key"]: v["value"] for v in entry["values"]},
        )
        for entry in golden.expected()["quotas"]
    ]
    assert sorted(mine) == sorted(theirs)


def test_scram_users_are_what_the_cluster_showed(directory: Path) -> None:
    response = ask_once(directory, DescribeUserScramCredentialsRequest(users=None), 0)
    mine = {r.user: {str(i.mechanism): i.iterations for i in r.credential_infos} for r in response.results}
    assert mine == golden.expected()["scram"]


def test_features_reassignments_and_resources_are_what_the_cluster_showed(directory: Path) -> None:
    async def run() -> None:
        async with served(directory, as_of=SHOWN) as asker:
            request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            versions = await asker.ask(request, 4)
            levels = {each.name: each.max_version_level for each in versions.finalized_features}
            assert levels == golden.expected()["features"]
            found = await asker.ask(ListPartitionReassignmentsRequest(topics=None), 0)
            assert found.topics == []
            resources = await asker.ask(ListConfigResourcesRequest(resource_types=[2]), 1)
            names = {each.resource_name for each in resources.config_resources}
            assert names == {topic["name"] for topic in golden.expected()["topics"]}

    asyncio.run(run())


def test_the_quorum_is_what_its_records_say(directory: Path) -> None:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = ask_once(directory, DescribeQuorumRequest(topics=[topic]), 2)
    (row,) = response.topics[0].partitions
    assert (row.leader_id, row.leader_epoch, row.high_watermark) == (3, 5, 4879)
    assert [(each.replica_id, each.log_end_offset) for each in row.current_voters] == [(1, 4879), (2, -1), (3, -1)]
    assert [each.node_id for each in response.nodes] == [1, 2, 3]


def test_controllers_are_shown_on_a_controller_listener(directory: Path) -> None:
    async def run() -> Any:
        listeners = f"{LISTENERS},CONTROLLER://127.0.0.1:0"
        async with served(directory, as_of=SHOWN, listeners=listeners) as asker:
            return await asker.ask(DescribeClusterRequest(endpoint_type=2), 1, "CONTROLLER")

    response = asyncio.run(run())
    assert [each.broker_id for each in response.brokers] == [row[0] for row in golden.expected()["controllers"]]
    assert response.controller_id == 3


# --- how brokers are shown


def test_every_broker_is_at_the_address_of_the_node_itself(directory: Path) -> None:
    async def run() -> None:
        async with served(directory, as_of=SHOWN) as asker:
            host, port = asker.node.addresses["PLAINTEXT"]
            metadata = await asker.ask(MetadataRequest(topics=None), 12)
            brokers = [(each.node_id, each.host, each.port, each.rack) for each in metadata.brokers]
            expected = [(row[0], host, port, row[3]) for row in golden.expected()["brokers"]]
            assert (brokers, metadata.cluster_id) == (expected, CLUSTER_ID)
            assert len(metadata.topics) == len(golden.expected()["topics"])

    asyncio.run(run())


def test_when_all_brokers_are_fenced_the_one_of_the_directory_is_shown_alive(directory: Path) -> None:
    response = ask_once(directory, DescribeClusterRequest(include_fenced_brokers=True), 2, EVERYTHING)
    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == [
        *((1, False), (2, True), (3, True), (4, True)),
    ]


# --- how far the log is shown


@pytest.mark.parametrize(
    ("text", "as_of"),
    [
        ("4878", AsOf(offset=4878)),
        ("1794771815197", AsOf(timestamp_ms=1794771815197)),
        ("2026-11-15T19:43:35.197Z", AsOf(timestamp_ms=1794771815197)),
        ("2026-11-15T20:43:35.197+01:00", AsOf(timestamp_ms=1794771815197)),
        ("2026-11-15 19:43:35.197", AsOf(timestamp_ms=1794771815197)),
    ],
)
def test_a_limit_is_an_offset_or_a_time(text: str, as_of: AsOf) -> None:
    assert parse_as_of(text) == as_of


def test_a_limit_that_is_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="not an offset, milliseconds, or a time"):
        parse_as_of("yesterday")


def test_the_cluster_is_shown_as_it_was_at_a_time(directory: Path) -> None:
    batch = next(batch for batch in golden.log() if batch.last_offset >= 1000)
    later = [each for each in golden.log() if each.append_timestamp_ms <= batch.append_timestamp_ms]

    async def run() -> int:
        async with served(directory, as_of=AsOf(timestamp_ms=batch.append_timestamp_ms)) as asker:
            return asker.node.image.offset

    assert asyncio.run(run()) == later[-1].last_offset


def test_a_torn_tail_is_left_out(directory: Path) -> None:
    last = sorted((directory / "__cluster_metadata-0").glob("*.log"))[-1]
    last.write_bytes(last.read_bytes()[:-5])

    async def run() -> None:
        async with served(directory) as asker:
            assert asker.node.image.offset == golden.log()[-2].last_offset
            assert asker.node.metadata.problem is not None

    asyncio.run(run())


def test_a_damaged_snapshot_is_replaced_by_an_older_one(directory: Path) -> None:
    latest = sorted((directory / "__cluster_metadata-0").glob("*.checkpoint"))[-1]
    latest.write_bytes(latest.read_bytes()[:1000])

    async def run() -> int:
        async with served(directory) as asker:
            return asker.node.image.offset

    assert asyncio.run(run()) == golden.log()[-1].last_offset


# --- that nothing changes


def test_every_change_is_refused_and_a_dry_run_is_answered(directory: Path) -> None:
    async def run() -> None:
        async with served(directory, as_of=SHOWN) as asker:
            topic = CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
            created = await asker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
            assert created.topics[0].error_code == POLICY_VIOLATION
            assert "read-only" in created.topics[0].error_message
            dry = await asker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=True), 7)
            assert dry.topics[0].error_code == 0
            name = golden.expected()["topics"][0]["name"]
            deleted = await asker.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)
            assert deleted.responses[0].error_code == POLICY_VIOLATION

    asyncio.run(run())


def test_not_a_byte_of_the_directory_changes(directory: Path) -> None:
    before = state(directory)

    async def run() -> None:
        async with served(directory) as asker:
            await asker.ask(MetadataRequest(topics=None), 12)
            await asker.ask(DescribeLogDirsRequest(topics=None), 4)
            await asker.ask(DeleteTopicsRequest(topic_names=["d-none"], timeout_ms=1000), 5)

    asyncio.run(run())
    assert state(directory) == before


@pytest.fixture
def unwritable(directory: Path) -> Iterator[Path]:
    paths = [directory, *directory.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield directory
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_directory_that_cannot_be_written_to_is_served(unwritable: Path) -> None:
    response = ask_once(unwritable, MetadataRequest(topics=None), 12)
    assert len(response.topics) == len(golden.expected()["topics"])


# --- what may be named


def test_a_directory_of_log_dirs_is_served_with_its_settings(directory: Path) -> None:
    parent = directory.parent
    (parent / "server.properties").write_text(
        "node.id=1\nprocess.roles=broker,controller\nlisteners=SSL://:1,CONTROLLER://:2\nnum.partitions=7\nlog.dirs=/none\n"
    )
    (parent / "more").mkdir()
    (parent / "more" / "meta.properties").write_text(META.replace("AEAAAAAAAAAQQ", "AEAAAAAAAAAgg"))
    found = find_directories([parent])
    config = read_only_config(found, {"listeners": LISTENERS})
    assert (found.log_dirs, found.metadata_log_dir) == ((parent / "more", directory), directory)
    assert (config.num_partitions, config.node_id) == (7, 1)


def test_settings_elsewhere_name_the_log_dirs(directory: Path, tmp_path: Path) -> None:
    place = tmp_path / "etc"
    place.mkdir()
    (place / "server.properties").write_text(f"node.id=1\nlog.dirs={directory}\n")
    assert find_directories([place]).log_dirs == (directory,)


def test_a_directory_without_a_metadata_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(META)
    with pytest.raises(NodeError, match="name the log dir that has __cluster_metadata-0"):
        find_directories([tmp_path])


def test_log_dirs_of_two_clusters_are_refused(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(directory, other)
    (other / "meta.properties").write_text(META.replace(CLUSTER_ID, "AAAABBBBCCCCDDDDEEEEFg"))
    with pytest.raises(NodeError, match="belongs to cluster"):
        find_directories([directory, other])


# --- the command


def test_the_command_serves_a_directory_until_it_is_told_to_stop(directory: Path) -> None:
    before = state(directory)
    how = ("--as-of", SHOWN.offset, "--override", f"listeners={LISTENERS}")
    with Process("serve", "--read-only", directory, *how) as process:
        port = process.until("bootstrap.servers=127.0.0.1:").partition("127.0.0.1:")[2].partition(";")[0]
        response = asyncio.run(ask(("127.0.0.1", int(port)), MetadataRequest(topics=None), 12))
        assert process.stop().exit_code == 0
    assert f"cluster {CLUSTER_ID} as node 1 left it, read-only" in process.lines[0]
    assert "up to offset 4878" in process.lines[1]
    assert len(response.topics) == len(golden.expected()["topics"])
    assert state(directory) == before
