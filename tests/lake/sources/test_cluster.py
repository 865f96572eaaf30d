"""The data source kafka_cluster on a node of barnabas, beside what Admin says of the same node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.records import TopicPartition
from barnabas.lake.declared_column import ddl
from barnabas.lake.reading.cluster_tables import ERROR, OBSERVATION, TABLES, ClusterOptions, Observation
from barnabas.lake.sources.cluster import ClusterStreamReader, following, observation_id
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ENTRY = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.PREFIXED, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
)
SECRET = "not-for-everyone"
SENT_MS = int(datetime.now(UTC).timestamp()) * 1000 - 3_600_000
"""The time of the first record; the others follow in milliseconds."""

Load = Callable[..., "DataFrame"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Topics, an ACL, a setting, a sensitive setting, and a group that is behind."""
    with Broker({"orders": 3, "payments": 1}, config=SECURED) as node:
        with sync.Producer({"bootstrap.servers": node.bootstrap_servers}) as producer:
            for number in range(9):
                producer.send("orders", f"value {number}".encode(), partition=number % 3, timestamp_ms=SENT_MS + number)
            producer.flush()
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:
            admin.create_acls([ENTRY])
            admin.alter_consumer_group_offsets("app", {TopicPartition("orders", 0): 1, TopicPartition("orders", 2): 3})
            orders = ConfigResource.topic("orders")
            ops = [AlterConfigOp("max.message.bytes", AlterConfigOpType.SET, "2000000")]
            node_1 = ConfigResource.broker(1)
            secret = [AlterConfigOp("listener.name.plaintext.ssl.key.password", AlterConfigOpType.SET, SECRET)]
            assert admin.incremental_alter_configs({orders: ops, node_1: secret}) == {orders: None, node_1: None}
        yield node


@pytest.fixture
def load(spark: SparkSession, broker: Broker) -> Load:
    def load(table: str, schema: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("kafka_cluster").option("bootstrap.servers", broker.bootstrap_servers)
        reader = reader.option("table", table).options(**options)
        return (reader if schema is None else reader.schema(schema)).load()

    return load


@pytest.fixture
def admin(broker: Broker) -> Iterator[Any]:
    with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as it:
        yield it


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def test_topics_and_partitions_are_those_of_the_cluster(load: Load, admin: Any) -> None:
    listed = admin.list_topics(include_internal=True)
    assert rows(load("topics"), "topic_name", "topic_id", "num_partitions", "replication_factor", "is_internal") == [
        (topic.name, str(topic.topic_id), topic.num_partitions, topic.replication_factor, topic.is_internal)
        for topic in listed
    ]
    described = admin.describe_topics(topic.name for topic in listed)
    assert rows(load("partitions"), "topic_name", "partition", "leader", "leader_epoch", "replicas", "isr") == [
        (topic.name, each.partition_index, each.leader_id, each.leader_epoch, list(each.replicas), list(each.isr))
        for topic in described.values()
        for each in topic.partitions
    ]


def test_every_row_has_the_cluster_and_its_observation(load: Load, broker: Broker) -> None:
    before = datetime.now(UTC)
    found = load("topics").collect()
    assert {row.cluster_id for row in found} == {broker.cluster_id}
    assert len({(row.observation_id, row.observed_at) for row in found}) == 1
    assert before - timedelta(seconds=1) < found[0].observed_at.astimezone(UTC) < datetime.now(UTC)
    assert {(row.previous_observation_id, row.seconds_since_previous) for row in found} == {(None, None)}
    again = load("topics").collect()
    assert again[0].observation_id != found[0].observation_id


def test_settings_have_their_source_and_no_secret(load: Load, admin: Any) -> None:
    resource = ConfigResource.topic("orders")
    frame = load("configs").cache()
    assert rows(frame.where("resource_name = 'orders'"), "name", "value", "source", "is_sensitive") == sorted(
        (entry.name, entry.value, entry.source.name, entry.is_sensitive)
        for entry in admin.describe_configs([resource])[resource].values()
    )
    sensitive = frame.where("name = 'listener.name.plaintext.ssl.key.password' and resource_name = '1'")
    assert rows(sensitive, "value", "is_sensitive") == [(None, True)]
    assert not any(SECRET in str(row) for row in frame.collect())
    assert rows(frame.where("is_sensitive and value is not null"), "name") == []
    frame.unpersist()


def test_acls_groups_and_their_lag(load: Load) -> None:
    columns = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
    assert rows(load("acls"), *columns) == [("TOPIC", "orders", "PREFIXED", "User:alice", "*", "READ", "ALLOW")]
    assert rows(load("groups"), "group_id", "type", "state", "coordinator_id", "num_members") == [
        ("app", "Classic", "Empty", 1, 0)
    ]
    lag = load("group_lag")
    assert rows(lag, "group_id", "topic_name", "partition", "committed_offset", "end_offset", "lag") == [
        ("app", "orders", 0, 1, 3, 2),
        ("app", "orders", 2, 3, 3, 0),
    ]
    behind, done = lag.orderBy("partition").collect()
    oldest_ms = behind.observed_at.timestamp() * 1000 - behind.lag_minutes * 60_000
    assert (round(oldest_ms - SENT_MS), done.lag_minutes) == (3, 0.0)  # the second record of partition 0
    assert rows(load("group_lag", "partition int, lag bigint"), "partition", "lag") == [(0, 2), (2, 0)]


def test_records_are_fetched_for_the_lag_in_time_only_if_its_column_is_wanted(broker: Broker) -> None:
    from barnabas.lake.reading import cluster_rows

    async def observed(*columns: str) -> list[Any]:
        asked = ClusterOptions.of({"table": "group_lag", "bootstrap.servers": broker.bootstrap_servers})
        return [row async for some in cluster_rows._observe(asked, Observation("1"), columns=columns) for row in some]

    assert {row["lag_minutes"] for row in asyncio.run(observed("lag"))} == {None}
    assert None not in {row["lag_minutes"] for row in asyncio.run(observed("lag", "lag_minutes"))}


def test_log_dirs_have_sizes_and_nodes_are_seen(load: Load, admin: Any, broker: Broker) -> None:
    sizes = {
        (each.topic, each.partition): each.size
        for log_dir in admin.describe_log_dirs()[1].values()
        for each in log_dir.replicas
    }
    found = rows(load("log_dirs"), "topic_name", "partition", "size_bytes")
    assert {(topic, partition): size for topic, partition, size in found} == sizes
    assert sizes["orders", 0] > 0
    assert rows(load("quorum"), "replica_id", "role", "lag") == [(1, "leader", 0)]
    assert rows(load("brokers"), "broker_id", "role", "host", "port", "is_fenced", "is_controller") == [
        (1, "broker", broker.host, broker.port, False, True)
    ]
    features = dict(rows(load("features"), "feature", "finalized_level"))
    described = admin.describe_features()
    assert features == {name: described.level(name) for name in described.supported_features}


def test_a_schema_may_name_some_columns_in_any_order(load: Load) -> None:
    frame = load("topics", "num_partitions int, error string, topic_name string").where("topic_name = 'orders'")
    assert [tuple(row) for row in frame.collect()] == [(3, None, "orders")]


def test_members_of_a_group_have_their_assignment(load: Load, broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "watchers", "client.id": "eye"}
    with sync.Consumer(settings) as consumer:
        consumer.subscribe(["payments"])
        for _ in range(100):
            consumer.poll(timeout_ms=100)
            if consumer.assignment():
                break
        (group,) = load("groups").where("group_id = 'watchers'").collect()
        (member,) = group.members
        assert (group.state, member.client_id) == ("Stable", "eye")
        assert [tuple(each) for each in member.assignment] == [("payments", 0)]
        (lag,) = load("group_lag").where("group_id = 'watchers'").collect()
        assert (lag.topic_name, lag.partition, lag.client_id, lag.end_offset) == ("payments", 0, "eye", 0)


def test_what_cannot_be_read_is_an_error_or_a_row_of_it(spark: SparkSession) -> None:
    with Broker() as plain:  # has no authorizer
        reader = spark.read.format("kafka_cluster").option("kafka.bootstrap.servers", plain.bootstrap_servers)
        reader = reader.option("table", "acls")
        with pytest.raises(Exception, match=r"table acls of 127.0.0.1:.* cannot be read: .*[Aa]uthorizer"):
            reader.load().collect()
        (row,) = reader.schema(f"{ddl(TABLES['acls'])}, {ddl([ERROR])}").load().collect()
        assert "cannot be read" in row.error
        assert (row.cluster_id, row.principal) == (plain.cluster_id, None)


def test_a_stream_gives_an_observation_in_each_run(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    stream = spark.readStream.format("kafka_cluster").option("bootstrap.servers", broker.bootstrap_servers)
    stream = stream.option("table", "topics").option("interval", "1h")
    for _ in range(2):
        writer = stream.load().writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).format("parquet").start(str(tmp_path / "out"))
        assert query.awaitTermination(60)
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("observed_at", "topic_name").collect()
    ids = list(dict.fromkeys(row.observation_id for row in found))
    assert [each.split("-")[0] for each in ids] == ["1", "2"]
    assert {(row.observation_id, row.previous_observation_id) for row in found} == {(ids[0], None), (ids[1], ids[0])}
    assert all(0 < row.seconds_since_previous < 60 for row in found if row.observation_id == ids[1])


# --- without Spark


def options(**given: str) -> ClusterOptions:
    return ClusterOptions.of({"bootstrap.servers": "localhost:1", "table": "topics", **given})


def stream_reader(**given: str) -> ClusterStreamReader:
    from pyspark.sql.types import StringType, StructField, StructType

    return ClusterStreamReader(options(**given), StructType([StructField("topic_name", StringType())]))


def test_a_stream_waits_for_its_interval() -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    reader = stream_reader(interval="1 hour")
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first["observation"] == 1
    assert reader.latestOffset(first, ReadAllAvailable()) == first
    old = {**first, "at_ms": first["at_ms"] - 3_600_000}
    assert reader.latestOffset(old, ReadAllAvailable())["observation"] == 2
    ahead = {**first, "at_ms": first["at_ms"] + 60_000}
    assert reader.latestOffset(ahead, ReadAllAvailable())["observation"] == 2, "the clock was set back"


def test_the_id_of_an_observation_follows_from_the_offsets() -> None:
    reader = stream_reader()
    start = reader.initialOffset()
    end = following(start, 1_000)
    first, again, second = (
        task.value
        for task in (
            *reader.partitions(start, end),
            *reader.partitions(start, end),
            *reader.partitions(end, following(end, 5_000)),
        )
    )
    assert first == again
    assert (first.id, first.previous_id) == (observation_id(end), None)
    assert (second.id, second.previous_id, second.previous_at_ms) == ("2-5000", "1-1000", 1_000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"table": "tables"}, "one of topics, partitions"),
        ({"topic": "orders"}, "no option topic; it has table"),
        ({"mode": "quiet"}, "PERMISSIVE or FAILFAST"),
        ({"interval": "often"}, "such as '30 seconds'"),
    ],
)
def test_a_wrong_option_is_named_with_the_right_ones(given: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        options(**given)


def test_settings_of_the_client_are_passed_on(tmp_path: Path) -> None:
    from barnabas.lake.reading.cluster_rows import client_settings

    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nrequest.timeout.ms=5\n")
    found = client_settings(options(**{"kafka.client.id": "lake", "clientConfig": str(file)}))
    assert found == {"bootstrap.servers": "localhost:1", "client.id": "lake", "request.timeout.ms": "5"}


def test_without_the_column_a_missing_part_is_left_out_or_fails(caplog: pytest.LogCaptureFixture) -> None:
    from barnabas.lake.reading import cluster_rows

    async def observed(**given: str) -> list[Any]:
        asked = options(**given)
        return [row async for some in cluster_rows._observe(asked, Observation("1"), columns=()) for row in some]

    async def two_rows(*_: object) -> Any:
        yield [{"topic_name": "a"}, {"topic_name": "b", "error": "topic b: TOPIC_AUTHORIZATION_FAILED"}]

    with Broker() as node, pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setitem(cluster_rows.READERS, "topics", two_rows)
        given = {"bootstrap.servers": node.bootstrap_servers}
        assert [row["topic_name"] for row in asyncio.run(observed(**given))] == ["a"]
        assert "skipped: in table topics" in caplog.text
        with pytest.raises(cluster_rows.ClusterReadError, match="topic b: TOPIC_AUTHORIZATION_FAILED"):
            asyncio.run(observed(**given, mode="FAILFAST"))


def test_controllers_are_asked_only_for_what_they_know() -> None:
    from barnabas.lake.reading import cluster_rows

    async def observed(table: str, controllers: str) -> list[Any]:
        asked = ClusterOptions.of({"table": table, "bootstrap.controllers": controllers})
        return [row async for some in cluster_rows._observe(asked, Observation("1"), columns=["error"]) for row in some]

    with Broker({"orders": 1}, config=SECURED) as node:
        found = {table: asyncio.run(observed(table, node.listeners["CONTROLLER"])) for table in TABLES}
    refused = {
        table for table, rows in found.items() if any("set bootstrap.servers" in row.get("error", "") for row in rows)
    }
    assert refused == TABLES.keys() - set(cluster_rows.OF_CONTROLLERS)
    assert not any("error" in row for table in cluster_rows.OF_CONTROLLERS for row in found[table])
    assert [(row["broker_id"], row["role"]) for row in found["brokers"]] == [(1, "controller")]


def test_every_table_begins_with_its_observation_and_documents_its_columns() -> None:
    for columns in TABLES.values():
        assert columns[: len(OBSERVATION)] == OBSERVATION
        assert all(column.doc.endswith(".") for column in columns)
        assert len({column.name for column in columns}) == len(columns)
