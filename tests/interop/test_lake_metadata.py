"""kafka_metadata on Apache Kafka: the live log is what lies in the directory, and what Kafka's own dump of it shows, masked."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, StringType, StructField, StructType
from tools.apache_kafka import ApacheKafka, run_tool

from barnabas.lake.reading.metadata_options import parse_options
from barnabas.lake.sources.metadata_reading import MetadataReader
from tests.crash.clients import create_topic
from tests.interop.side_by_side import ok

pytestmark = pytest.mark.interop

COLUMNS: dict[str, DataType] = {
    "cluster_id": StringType(),
    "offset": LongType(),
    "base_offset": LongType(),
    "leader_epoch": IntegerType(),
    "record_type": StringType(),
    "is_control": BooleanType(),
    "is_snapshot": BooleanType(),
    "committed": BooleanType(),
    "payload": StringType(),
}
SECRET = re.compile(r'"(salt|storedKey|serverKey)":"[^"]+"')
PAYLOAD = re.compile(r'^\| offset: (\d+) .* payload: \{"type":"\w+","version":\d+,"data":(\{.*\})\}$', re.MULTILINE)


def read(**options: str) -> list[dict[str, Any]]:
    schema = StructType([StructField(name, kind) for name, kind in COLUMNS.items()])
    reader = MetadataReader(parse_options({name.replace("_", "."): value for name, value in options.items()}), schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return [row for row in rows if not row["is_snapshot"]]


def test_the_live_log_is_that_of_the_directory_and_that_of_kafkas_dump(kafka: ApacheKafka) -> None:
    for number in range(3):
        create_topic(kafka.bootstrap, f"lake-metadata-{number}", 2)
    scram = "SCRAM-SHA-256=[iterations=4096,password=secret]"
    user = ("--entity-type", "users", "--entity-name", "lake-metadata")
    ok(kafka.tool("kafka-configs", "--alter", *user, "--add-config", scram))
    ok(kafka.tool("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256"))
    live = {row["offset"]: row for row in read(bootstrap_controllers=kafka.controller)}
    disk = {row["offset"]: row for row in read(path=str(kafka.directory / "data"))}
    assert set(live) == set(range(max(live) + 1))
    assert {offset: disk[offset] for offset in live} == live
    assert {row["committed"] for row in live.values()} == {True}
    assert [row["record_type"] for row in live.values()].count("TopicRecord") >= 3

    (segment,) = (kafka.directory / "data" / "__cluster_metadata-0").glob("*.log")
    dump = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segment))
    printed = {int(offset): text for offset, text in PAYLOAD.findall(dump.stdout)}
    assert len(printed) > 10
    for offset, said in printed.items():
        if offset in live:
            secrets = 3 if live[offset]["record_type"] == "UserScramCredentialRecord" else 0
            assert SECRET.subn(r'"\1":""', said) == (live[offset]["payload"], secrets)
    assert "UserScramCredentialRecord" in {live[offset]["record_type"] for offset in printed if offset in live}
