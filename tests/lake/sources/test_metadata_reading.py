"""The readers of `kafka_metadata`, called as Spark calls them: plans, filters, streams and what is lost."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.batches import Record, build_batch, iterate_batches
from barnabas.client.admin.topics import NewTopic
from barnabas.client.sync import Admin
from barnabas.lake.reading.log_progress import DataLossError
from barnabas.lake.reading.metadata_files import find_logs
from barnabas.lake.reading.metadata_options import parse_options
from barnabas.lake.reading.metadata_parts import FilePart
from barnabas.lake.reading.metadata_rows import BadDataError
from barnabas.lake.reading.metadata_scan import inspect
from barnabas.lake.reading.options import OptionError
from barnabas.lake.sources.metadata import COLUMNS, ERROR, KafkaMetadata
from barnabas.lake.sources.metadata_reading import MetadataReader
from barnabas.lake.sources.metadata_stream import TOPIC_ID, MetadataStreamReader
from barnabas.testing import Broker
from tests.lake.metadata_golden import CLUSTER_ID, COMMITTED_END, LOG_END_OF_NODE_1, damage, unpack

LOG = "__cluster_metadata-0"
TYPES = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "boolean": BooleanType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
}
SCHEMA = StructType([StructField(column.name, TYPES[column.type]) for column in (*COLUMNS, ERROR)])


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return unpack(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def node_1(nodes: dict[int, Path], tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(nodes[1], tmp_path / "node1"))


def columns(*names: str) -> StructType:
    return StructType([SCHEMA[name] for name in names])


def rows_of(reader: MetadataReader | MetadataStreamReader, parts: Any) -> list[dict[str, Any]]:
    form = reader._format.schema
    read = pickle.loads(pickle.dumps(reader)).read if isinstance(reader, MetadataStreamReader) else reader.read
    batches = [batch for part in parts for batch in read(pickle.loads(pickle.dumps(part)))]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema=form).to_pylist()
    return rows


def batch(
    *paths: Path, schema: StructType = SCHEMA, filters: tuple[Filter, ...] = (), **options: Any
) -> list[dict[str, Any]]:
    given = {"paths": ",".join(map(str, paths))} if paths else {}
    reader = MetadataReader(parse_options({**given, **options, "pushFilters": "true"}), schema)
    if filters:
        assert list(reader.pushFilters(list(filters))) == list(filters)
    return rows_of(reader, reader.partitions())


# Plans


def test_any_subset_of_columns_in_any_order_is_given(nodes: dict[int, Path]) -> None:
    rows = batch(nodes[1], schema=columns("record_type", "offset"), startingOffsets="7", endingOffsets="9")
    assert [list(row) for row in rows] == [["record_type", "offset"]] * 2
    assert rows[0] == {"record_type": "RegisterBrokerRecord", "offset": 7}


def test_a_log_is_cut_into_pieces_without_a_gap_or_anything_twice(nodes: dict[int, Path]) -> None:
    for size in ("1k", "10k", "50k", "1g"):
        reader = MetadataReader(parse_options({"path": str(nodes[1]), "maxPartitionBytes": size}), columns("offset"))
        parts = reader.partitions()
        assert len(parts) >= {"1k": 20, "10k": 20, "50k": 7, "1g": 4}[size]
        offsets = [row["offset"] for row in rows_of(reader, parts) if row["offset"] is not None]
        assert sorted(offsets) == list(range(LOG_END_OF_NODE_1))


def test_indexes_that_lie_are_found_out(node_1: Path) -> None:
    for index in (node_1 / LOG).glob("*.index"):
        index.write_bytes(
            b"".join((at * 7).to_bytes(4, "big") + (at * 911 + 1).to_bytes(4, "big") for at in range(1, 90))
        )
    offsets = [row["offset"] for row in batch(node_1, schema=columns("offset"), startingOffsets="1000")]
    assert sorted(each for each in offsets if each is not None) == list(range(1000, LOG_END_OF_NODE_1))


def test_a_directory_of_only_a_bootstrap_checkpoint_gives_its_records(nodes: dict[int, Path], tmp_path: Path) -> None:
    shutil.copy(nodes[1] / "bootstrap.checkpoint", tmp_path)
    rows = batch(tmp_path, clusterId="c", nodeId="9")
    assert [row["record_type"] for row in rows if not row["is_control"]] == [
        "FeatureLevelRecord",
        "UserScramCredentialRecord",
    ]
    assert {(row["cluster_id"], row["node_id"], row["is_snapshot"]) for row in rows} == {("c", 9, True)}
    assert not [row for row in batch(nodes[1]) if row["source_file"].endswith("bootstrap.checkpoint")]


def test_a_directory_without_a_metadata_log_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has no __cluster_metadata-0; give the log dir"):
        batch(tmp_path)
    with pytest.raises(OptionError, match="does not exist, or is not a directory"):
        batch(tmp_path / "nowhere")


def test_the_schema_follows_the_payload() -> None:
    assert "`payload` string" in KafkaMetadata({"path": "/x"}).schema()
    assert "`payload` variant" in KafkaMetadata({"path": "/x", "payload": "variant"}).schema()


def test_options_exclude_each_other_and_name_what_is_known() -> None:
    with pytest.raises(OptionError, match="a path or bootstrap"):
        parse_options({"path": "/x", "bootstrap.controllers": "localhost:1"})
    with pytest.raises(OptionError, match="need bootstrap"):
        parse_options({"path": "/x", "kafka.client.id": "me"})
    with pytest.raises(OptionError, match="includeUncommitted"):
        parse_options({"path": "/x", "isolation": "read_committed"})
    found = parse_options({"bootstrap.controllers": "localhost:1", "kafka.client.id": "me"})
    assert dict(found.client) == {"bootstrap.controllers": "localhost:1", "client.id": "me"}


def test_offsets_and_times_in_options_choose_rows(nodes: dict[int, Path]) -> None:
    some = batch(nodes[1], schema=columns("offset", "append_time"), startingOffsets="100", endingOffsets="103")
    assert [row["offset"] for row in some] == [100, 101, 102]
    first, last = some[0]["append_time"], some[-1]["append_time"]
    timed = batch(
        nodes[1],
        schema=columns("offset", "append_time"),
        startingTimestamp=first.isoformat(),
        endingTimestamp=str(int(last.timestamp() * 1000) + 1),
    )
    assert {100, 101, 102} <= {row["offset"] for row in timed}
    assert all(first <= row["append_time"] <= last for row in timed)


# Filters


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        ((EqualTo(("offset",), 1300),), lambda row: row["offset"] == 1300),
        ((EqualNullSafe(("offset",), 1300),), lambda row: row["offset"] == 1300),
        ((In(("offset",), (5, 5000)),), lambda row: row["offset"] in (5, 5000)),
        (
            (GreaterThan(("offset",), 1294), LessThanOrEqual(("offset",), 1296), IsNotNull(("offset",))),
            lambda row: row["offset"] is not None and 1294 < row["offset"] <= 1296,
        ),
        (
            (GreaterThanOrEqual(("offset",), 5000), LessThan(("offset",), 5001)),
            lambda row: row["offset"] == 5000,
        ),
        ((EqualTo(("is_snapshot",), True),), lambda row: row["is_snapshot"]),
        ((EqualTo(("is_snapshot",), False),), lambda row: not row["is_snapshot"]),
        ((EqualTo(("node_id",), 1),), lambda row: row["node_id"] == 1),
        ((In(("node_id",), (2, 4)),), lambda row: row["node_id"] in (2, 4)),
        (
            (In(("record_type",), ("TopicRecord", "VotersRecord")),),
            lambda row: row["record_type"] in ("TopicRecord", "VotersRecord"),
        ),
        (
            (GreaterThan(("append_time",), datetime(2026, 11, 15, 19, 49, tzinfo=UTC)),),
            lambda row: row["append_time"] > datetime(2026, 11, 15, 19, 49, tzinfo=UTC),
        ),
        ((Not(EqualTo(("offset",), 5)), StringStartsWith(("topic_name",), "d-")), lambda row: True),
    ],
)
def test_filters_leave_out_nothing_that_passes_them(nodes: dict[int, Path], filters: Any, condition: Any) -> None:
    schema = columns("node_id", "offset", "is_snapshot", "record_type", "append_time", "source_file", "batch_index")
    every = batch(*nodes.values(), schema=schema)
    pushed = batch(*nodes.values(), schema=schema, filters=filters)
    expected = [row for row in every if condition(row)]
    assert expected
    assert [row for row in pushed if condition(row)] == expected
    assert len(pushed) < len(every) or len(expected) == len(every)


def test_filters_spare_files(nodes: dict[int, Path]) -> None:
    reader = MetadataReader(parse_options({"path": str(nodes[1]), "pushFilters": "true"}), SCHEMA)
    reader.pushFilters([EqualTo(("offset",), 3000)])
    (part,) = reader.partitions()
    assert isinstance(part.value, FilePart)
    assert part.value.piece.path.endswith("00000000000000002639.log")
    assert part.value.piece.position > 0
    late = MetadataReader(parse_options({"path": str(nodes[1]), "pushFilters": "true"}), SCHEMA)
    late.pushFilters(
        [
            GreaterThan(("append_time",), datetime(2026, 11, 15, 19, 52, 30, tzinfo=UTC)),
            EqualTo(("is_snapshot",), False),
        ]
    )
    assert len(late.partitions()) == 1


# Damage, and what is gone


def test_damage_is_a_row_or_an_error_and_never_shows_what_it_is_about(node_1: Path) -> None:
    position, offsets = damage(node_1 / LOG / "00000000000000001295.log", 1430)
    bad = [row for row in batch(node_1) if row["error"] is not None]
    assert [(row["position"], row["base_offset"], row["offset"], row["raw"]) for row in bad] == [
        (position, offsets[0], None, None)
    ]
    without = batch(node_1, schema=columns("offset"))
    assert set(range(LOG_END_OF_NODE_1)) - {row["offset"] for row in without} == set(offsets)
    with pytest.raises(BadDataError, match=r"00000000000000001295\.log, position \d+: .*checksum"):
        batch(node_1, mode="FAILFAST")


def test_bytes_that_are_no_batch_end_their_segment_and_no_other(node_1: Path) -> None:
    path = node_1 / LOG / "00000000000000001295.log"
    data = bytearray(path.read_bytes())
    data[40_000:40_100] = b"\xff" * 100
    path.write_bytes(data)
    rows = batch(node_1, maxPartitionBytes="1g")
    assert [row for row in rows if row["error"] is not None]
    offsets = {row["offset"] for row in rows if row["offset"] is not None}
    assert set(range(1295)) | set(range(2639, LOG_END_OF_NODE_1)) <= offsets


def test_a_torn_tail_is_left_for_later(node_1: Path) -> None:
    path = node_1 / LOG / "00000000000000004706.log"
    path.write_bytes(path.read_bytes()[:-10])
    rows = batch(node_1, mode="FAILFAST")
    assert max(row["offset"] for row in rows if row["offset"] is not None) == LOG_END_OF_NODE_1 - 2


def test_what_is_removed_after_planning_is_reported(node_1: Path) -> None:
    reader = MetadataReader(parse_options({"path": str(node_1)}), SCHEMA)
    parts = reader.partitions()
    for each in [*(node_1 / LOG).glob("*1295.log"), *(node_1 / LOG).glob("*1568*.checkpoint")]:
        each.unlink()
    errors = sorted(row["error"] for row in rows_of(reader, parts) if row["error"] is not None)
    assert len(errors) == 2
    assert errors[0].startswith("removed after planning: offsets 1295 to 2638 of ")
    assert errors[1].startswith("removed after planning: the snapshot ")


# Streams


class Stream:
    """A query with its checkpoint: runs take what is there, and a run may begin with another reader."""

    def __init__(self) -> None:
        self.offset: dict[str, Any] | None = None

    def run(
        self, *paths: Path, limit: Any = None, extra: tuple[str, ...] = (), **options: str
    ) -> list[list[dict[str, Any]]]:
        given = {"paths": ",".join(map(str, paths))} if paths else {}
        schema = columns("offset", "last_offset", "is_snapshot", "snapshot_end_offset", "committed", "payload", *extra)
        reader = MetadataStreamReader(parse_options({**given, **options}), schema)
        if self.offset is None:
            self.offset = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        batches: list[list[dict[str, Any]]] = []
        for _ in range(1000):
            end = reader.latestOffset(self.offset, limit or reader.getDefaultReadLimit())
            if end == self.offset:
                return batches
            batches.append(rows_of(reader, reader.partitions(self.offset, end)))
            assert rows_of(reader, reader.partitions(self.offset, end)) == batches[-1]
            reader.commit(end)
            self.offset = end
        raise AssertionError("it does not end")


def offsets_of(batches: list[list[dict[str, Any]]]) -> list[int]:
    return sorted(row["offset"] for rows in batches for row in rows if not row["is_snapshot"])


def test_a_stream_has_each_committed_offset_once_and_its_offset_says_whose_it_is(nodes: dict[int, Path]) -> None:
    stream = Stream()
    batches = stream.run(*nodes.values())
    assert len(batches) == 1
    assert offsets_of(batches) == list(range(COMMITTED_END))
    assert stream.offset == {"cluster_id": CLUSTER_ID, "topic_id": TOPIC_ID, "offset": COMMITTED_END, "leader_epoch": 6}
    assert stream.run(*nodes.values()) == []


@pytest.mark.parametrize("limit", [ReadMaxRows(400), ReadMaxBytes(20_000), ReadMaxRows(1)])
def test_limits_cut_at_the_ends_of_batches(nodes: dict[int, Path], limit: Any) -> None:
    start = "5000" if limit == ReadMaxRows(1) else "0"
    batches = Stream().run(nodes[1], nodes[2], limit=limit, startingOffsets=start)
    assert len(batches) > 5
    assert offsets_of(batches) == list(range(int(start), COMMITTED_END))
    for rows in batches:
        assert max(row["offset"] for row in rows) == max(row["last_offset"] for row in rows)
        if isinstance(limit, ReadMaxRows):
            assert len(rows) <= limit.max_rows or len({row["last_offset"] for row in rows}) == 1


def test_a_stream_goes_on_where_it_was_as_the_log_grows(nodes: dict[int, Path], tmp_path: Path) -> None:
    path = tmp_path / "d0"
    shutil.copytree(nodes[1], path)
    last = path / LOG / "00000000000000004706.log"
    content = last.read_bytes()
    stream = Stream()
    found: list[int] = []
    for size in (0, 5000, 5001, 17_000, 17_000, len(content)):
        last.write_bytes(content[:size])
        found += offsets_of(stream.run(path, voters="1"))
    assert found == list(range(LOG_END_OF_NODE_1))


def test_a_log_that_was_cut_off_and_written_anew_is_seen_as_it_is_now(node_1: Path) -> None:
    (log,) = find_logs([node_1])
    before, scan = inspect(log)
    last = node_1 / LOG / "00000000000000004706.log"
    content = last.read_bytes()
    cut = next(at for at, header in iterate_batches(content) if header.base_offset >= 5079)
    records = [Record(5079 + at, 1, None, b"\x01\x14\x00\x00") for at in range(9)]
    tail = build_batch(records, base_offset=5079, partition_leader_epoch=9)
    last.write_bytes(content[:cut] + tail)
    after, _ = inspect(log, scan)
    assert before.log_end == LOG_END_OF_NODE_1
    assert (after.log_end, after.lineage[-1]) == (5088, (9, 5079))


def flip(path: Path, rng: Random) -> str:
    """Change one byte of a segment that more batches follow, anywhere in a batch but in its epoch."""
    segment = rng.choice(sorted(path.glob("*.log"))[:-1])
    data = bytearray(segment.read_bytes())
    position, header = rng.choice(list(iterate_batches(bytes(data))))
    at = rng.choice([*range(12), 16, *range(17, header.size_in_bytes)])
    data[position + at] ^= 1 << rng.randrange(8)
    segment.write_bytes(data)
    return f"byte {at} of the batch at {position} of {segment.name}"


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_batch_is_read_from_another_copy(nodes: dict[int, Path], tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    copies = {node: Path(shutil.copytree(path, tmp_path / f"node{node}")) for node, path in nodes.items()}
    damaged = rng.choice(list(copies))
    what = flip(copies[damaged] / LOG, rng)
    for filler in (copies[node] for node in copies if node != damaged):
        assert not inspect(find_logs([filler])[0])[0].damaged
    (whole,) = Stream().run(*nodes.values())
    (found,) = Stream().run(*copies.values())
    assert found == whole, (damaged, what)


def test_damage_in_every_copy_is_reported_and_the_stream_goes_on_at_the_next_snapshot(node_1: Path) -> None:
    segment = node_1 / LOG / "00000000000000001295.log"
    _, offsets = damage(segment, 1430)
    stream = Stream()
    (rows,) = stream.run(node_1, voters="1", extra=("error",))
    errors = [row["error"] for row in rows if row["error"]]
    assert len(errors) == 1 and "checksum" in errors[0]
    snapshots = {row["snapshot_end_offset"] for row in rows if row["is_snapshot"]}
    assert len(snapshots) == 1
    (end,) = snapshots
    read = [row["offset"] for row in rows if row["offset"] is not None]
    assert sorted(read) == [*range(offsets[0]), *range(end, LOG_END_OF_NODE_1)]


def test_damage_at_the_end_is_left_until_the_log_goes_on(node_1: Path) -> None:
    last = sorted((node_1 / LOG).glob("*.log"))[-1]
    content = last.read_bytes()
    last.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    stream = Stream()
    (rows,) = stream.run(node_1, voters="1")
    end = max(row["offset"] for row in rows if row["offset"] is not None) + 1
    assert end < LOG_END_OF_NODE_1
    last.write_bytes(content)  # the node had not finished writing it
    assert offsets_of(stream.run(node_1, voters="1")) == list(range(end, LOG_END_OF_NODE_1))


def test_uncommitted_records_are_there_on_request(nodes: dict[int, Path]) -> None:
    (rows,) = Stream().run(*nodes.values(), includeUncommitted="true")
    assert offsets_of([rows]) == list(range(LOG_END_OF_NODE_1))
    assert {row["committed"] for row in rows if row["offset"] >= COMMITTED_END} == {None}


def remove(path: Path, *bases: int) -> None:
    for base in bases:
        for each in (path / LOG).glob(f"{base:020d}*"):
            each.unlink()


def test_a_stream_begins_with_a_snapshot_where_the_log_does_not_go_back(node_1: Path) -> None:
    remove(node_1, 0, 1295)
    batches = Stream().run(node_1, voters="1", maxBytesPerTrigger="30k")
    assert {row["snapshot_end_offset"] for row in batches[0]} == {3603}
    assert {row["is_snapshot"] for row in batches[0]} == {True}
    assert offsets_of(batches) == list(range(3603, LOG_END_OF_NODE_1))
    (whole,) = Stream().run(node_1, voters="1")
    assert len(whole) == sum(map(len, batches))


def test_a_log_that_starts_behind_the_stream_goes_on_from_its_snapshot(nodes: dict[int, Path], node_1: Path) -> None:
    stream = Stream()
    stream.run(nodes[1], voters="1", endingOffsets="1200", startingOffsets="1000", limit=ReadMaxRows(100))
    assert stream.offset is not None
    stream.offset = {**stream.offset, "offset": 1200, "leader_epoch": 3}
    remove(node_1, 0, 1295)
    (rows,) = stream.run(node_1, voters="1")
    assert {row["snapshot_end_offset"] for row in rows if row["is_snapshot"]} == {3603}
    assert offsets_of([rows]) == list(range(3603, LOG_END_OF_NODE_1))


def test_a_log_that_was_cut_off_is_data_loss(node_1: Path) -> None:
    stream = Stream()
    stream.run(node_1, voters="1")
    last = node_1 / LOG / "00000000000000004706.log"
    last.write_bytes(last.read_bytes()[:9000])
    with pytest.raises(DataLossError, match=r"5244 \(epoch 6\).*barnabas lake rebuild.*failOnDataLoss=false"):
        stream.run(node_1, voters="1")
    assert offsets_of(stream.run(node_1, voters="1", failOnDataLoss="false")) == []
    assert stream.offset is not None
    assert stream.offset["offset"] < 5000


def test_a_tail_that_is_another_one_now_is_data_loss(nodes: dict[int, Path]) -> None:
    stream = Stream()
    stream.run(nodes[1], voters="1")
    assert stream.offset is not None
    stream.offset = {**stream.offset, "offset": 5100, "leader_epoch": 5}  # where the log has epoch 6
    with pytest.raises(DataLossError, match=r"before offset 5079 \(epoch 5\) in common"):
        stream.run(nodes[1], voters="1")
    assert offsets_of(stream.run(nodes[1], voters="1", failOnDataLoss="false")) == list(range(5079, LOG_END_OF_NODE_1))


def test_a_log_of_another_cluster_is_data_loss(nodes: dict[int, Path]) -> None:
    stream = Stream()
    stream.run(nodes[2], voters="2")
    with pytest.raises(DataLossError, match=f"that of the cluster {CLUSTER_ID} and is that of another now"):
        stream.run(nodes[2], voters="2", clusterId="another")
    again = stream.run(nodes[2], voters="2", clusterId="another", failOnDataLoss="false")
    assert offsets_of(again) == list(range(COMMITTED_END))


def test_a_copy_that_is_missing_for_a_while_is_waited_for(nodes: dict[int, Path]) -> None:
    stream = Stream()
    stream.run(nodes[1], nodes[2])
    assert stream.run(nodes[1]) == []  # of node 1 alone, only its snapshots are certain
    assert stream.run(nodes[1], nodes[2]) == []


def test_directories_of_two_clusters_are_no_stream(nodes: dict[int, Path], node_1: Path) -> None:
    meta = node_1 / "meta.properties"
    meta.write_text(meta.read_text().replace(CLUSTER_ID, "another"))
    with pytest.raises(OptionError, match="a stream reads one cluster"):
        Stream().run(nodes[2], node_1)
    assert {row["cluster_id"] for row in batch(nodes[2], node_1)} == {CLUSTER_ID, "another"}


# Live


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 3, "payments": 1}) as broker:
        yield broker


def test_a_live_log_is_what_is_in_the_directory(broker: Broker) -> None:
    controllers: dict[str, Any] = {"bootstrap.controllers": broker.listeners["CONTROLLER"]}
    disk = [row for row in batch(broker.data_dir) if not row["is_snapshot"]]
    live = {row["offset"]: row for row in batch(**controllers)}
    for row in disk:
        other = live[row["offset"]]
        assert {name for name in row if row[name] != other[name]} <= {"source_file", "position"}
    assert other["source_file"] == f"kafka://{broker.listeners['CONTROLLER']}"
    assert [row["offset"] for row in batch(**controllers, startingOffsets="10", endingOffsets="12")] == [10, 11]
    assert [row["offset"] for row in batch(**controllers, filters=(EqualTo(("offset",), 7),))] == [7]


def test_a_live_stream_goes_on_where_it_was(broker: Broker) -> None:
    controllers: dict[str, Any] = {"bootstrap.controllers": broker.listeners["CONTROLLER"]}
    stream = Stream()
    first = stream.run(**controllers, limit=ReadMaxRows(5))
    assert len(first) > 2
    assert all(max(row["offset"] for row in rows) == max(row["last_offset"] for row in rows) for rows in first)
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic("later", 2)])
    second = stream.run(**controllers, limit=ReadAllAvailable())
    assert offsets_of(first + second) == list(range(len(offsets_of(first + second))))
    assert stream.offset is not None
    assert stream.offset["cluster_id"] == broker.cluster_id
    stream.offset = {**stream.offset, "offset": stream.offset["offset"] + 1000}
    with pytest.raises(DataLossError, match="truncated"):
        stream.run(**controllers)


def test_a_live_secret_is_masked(broker: Broker) -> None:
    from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource

    controllers: dict[str, Any] = {"bootstrap.controllers": broker.listeners["CONTROLLER"]}
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        op = AlterConfigOp("listener.name.plaintext.ssl.keystore.password", AlterConfigOpType.SET, "hunter2-hunter2")
        admin.incremental_alter_configs({ConfigResource.broker(1): [op]})
    places: list[dict[str, Any]] = [controllers, {"path": str(broker.data_dir)}]
    for given in places:
        rows = batch(**given)
        assert [row for row in rows if "keystore.password" in (row["payload"] or "")]
        assert "hunter2" not in str(rows)
        assert "hunter2" in str(batch(**given, includeSecrets="true"))
