"""What a lake has on request: the sums of what was written to topics, and what a live cluster said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client import AcknowledgeType, AlterConfigOp, AlterConfigOpType, ConfigResource, sync
from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping.feeds import find_feeds
from barnabas.lake.keeping.runner import Batch, Runner
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.tables.all import STREAMS, TRAFFIC
from barnabas.testing import Broker
from tests.lake.commands import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_MS = 3_600_000
NOON_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS


def produce(broker: Broker, *records: tuple[int, bytes | None, bytes | None, int]) -> None:
    """Partition, key, value, and the hour; in a transaction, so that a marker follows in each partition."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}
    with sync.Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for partition, key, value, hour in records:
            at_ms = NOON_MS + hour * HOUR_MS
            producer.send("orders", value, key=key, partition=partition, timestamp_ms=at_ms)
        producer.commit_transaction()


def grow(spark: SparkSession, broker: Broker, directory: Path) -> list[Batch]:
    batches: list[Batch] = []
    with Writer(directory) as writer:
        writer.open()
        Runner(spark, writer, watch=batches.append).run(find_feeds([broker.data_dir], (TRAFFIC,), {}))
    return batches


def test_what_is_written_is_summed_up_and_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "lake"
    with Broker({"orders": 2}, data_dir=tmp_path / "node") as broker:
        produce(broker, (0, b"big", b"123", 0), (0, b"big", None, 0), (0, b"\xff\xfe", b"1", 1), (1, None, b"12345", 0))
        (first,) = grow(spark, broker, directory)
        produce(broker, (1, b"big", b"1", 1))
        (second,) = grow(spark, broker, directory)
    assert [(batch.rows, batch.markers) for batch in (first, second)] == [(6, 2), (2, 1)]
    tables = OpenLake(spark, Lake(directory))
    found = sorted(
        ((row.partition, row.first_offset), (row.records, row.bytes, row.last_offset))
        for row in tables["traffic"].collect()
    )
    marker = (0, 0)
    by_place = {place: sums for place, sums in found if sums[:2] != marker}
    assert by_place == {(0, 0): (2, 9, 1), (0, 2): (1, 3, 2), (1, 0): (1, 5, 0), (1, 2): (1, 4, 2)}
    assert max(sums[2] for (partition, _), sums in found if partition == 0) == 3, "the marker ends the log"
    (key,) = tables["key_counts"].collect()
    assert (key.partition, key.key, key.records, key.first_offset) == (0, "big", 2, 0)
    (topic,) = tables["topic_traffic"].collect()
    assert (topic.topic, topic.records, topic.bytes, topic.partitions) == ("orders", 5, 21, 2)
    assert topic.records == sum(batch.rows - batch.markers for batch in (first, second)), "the number that a run prints"
    assert (topic.first_time.timestamp(), topic.last_time.timestamp()) == (NOON_MS / 1000, NOON_MS / 1000 + 3600)
    assert "bronze/log_records" not in tables.manifest.tables
    assert not Lake(directory).data.files("bronze/log_records")


def test_topics_of_kafka_itself_are_no_traffic(tmp_path: Path) -> None:
    with Broker({"orders": 1}, data_dir=tmp_path) as broker:
        produce(broker, (0, b"k", b"v", 0))
    (feed,) = (feed for feed in find_feeds([tmp_path], (*STREAMS, TRAFFIC), {}) if feed.stream is TRAFFIC)
    assert feed.name == f"{feed.cluster_id}/kafka_log"
    assert feed.options["topicsPattern"] == "(?!__).+"
    assert find_feeds([tmp_path / "__transaction_state-0"], STREAMS, {}, "c")


def test_a_live_cluster_is_observed_with_each_run(lake: Path, broker: Broker) -> None:
    query = """select role, lag, observations > 0 as is_seen, is_there, (select count(*) from disk_balance) as log_dirs,
               (select count(*) from topic_sizes where topic = 'orders' and partitions = 3) as topics from quorum_health"""
    (found,) = rows(lake, "sql", query)
    assert found == {"role": "leader", "lag": 0, "is_seen": True, "is_there": True, "log_dirs": 1, "topics": 1}


def test_a_share_group_has_its_position_and_its_lag(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "lake"
    with Broker({"orders": 1}, data_dir=tmp_path / "node") as broker:
        produce(broker, *((0, None, b"%d" % number, 0) for number in range(5)))
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "workers"}
        explicit = {**settings, "share.acknowledgement.mode": "explicit", "max.poll.records": "3"}
        with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            earliest = AlterConfigOp("share.auto.offset.reset", AlterConfigOpType.SET, "earliest")
            admin.incremental_alter_configs({ConfigResource.group("workers"): [earliest]})
        with sync.ShareConsumer({**explicit, "share.acquire.mode": "record_limit"}, topics=["orders"]) as consumer:
            records = consumer.poll(timeout_ms=30_000)
            assert [record.offset for record in records] == [0, 1, 2]
            for record in records:
                consumer.acknowledge(record, AcknowledgeType.RELEASE if record.offset == 1 else AcknowledgeType.ACCEPT)
            consumer.commit()
    with Writer(directory) as writer:
        writer.open()
        Runner(spark, writer).run(find_feeds([tmp_path / "node"], (*STREAMS, TRAFFIC), {}))
    tables = OpenLake(spark, Lake(directory))
    (held,) = [row for row in tables["share_partitions"].collect() if row.valid_to_offset is None]
    # Offsets 0 and 2 are done; the start offset is stored with the next change.
    assert (held.group_id, held.partition, held.start_offset, held.delivery_complete_count) == ("workers", 0, 0, 2)
    (behind,) = tables["group_lag"].collect()
    assert (behind.group_id, behind.topic, behind.committed_offset) == ("workers", "orders", 0)
    assert behind.lag == 6 - 2  # five records and a marker
