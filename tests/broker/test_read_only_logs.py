"""The logs of a node of Apache Kafka, its groups and its transactions, served from its directories as they are."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import Record, build_batch, decode_records, iterate_batches
from barnabas.broker.served import WRITING_KEYS, served_versions
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.replicated.placement import partition_for
from barnabas.wire import APIS, ErrorCode, Message, message_class
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.broker.test_read_only import POLICY_VIOLATION, SHOWN, Asker, served
from tests.storage import golden
from tests.storage.looking import state

DATA = Path(__file__).parent / "data"
GROUPS = Path(__file__).parents[1] / "groups" / "data" / "groups.json"
OFFSETS_PARTITION = 1  # of `__consumer_offsets`, the one that this node has
START, STABLE, END, MAX_TIMESTAMP = (-2, 0), (-1, 1), (-1, 0), (-3, 0)


@cache
def expected() -> dict[str, Any]:
    """What the cluster showed of what this node has, before it was stopped."""
    found: dict[str, Any] = json.loads(gzip.decompress((DATA / "read_only.json.gz").read_bytes()))
    return found


def groups() -> dict[str, Any]:
    found = json.loads(GROUPS.read_text())
    return {name: row for name, row in found.items() if partition_for(name, 3) == OFFSETS_PARTITION}


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Both log dirs; after all tests not a byte of them has changed."""
    directory = golden.extract_node(tmp_path_factory.mktemp("golden"))
    before = state(directory)
    yield directory
    assert state(directory) == before


@pytest.fixture
def own_node(tmp_path: Path) -> Path:
    """To be broken."""
    return golden.extract_node(tmp_path)


def asking(node: Path, ask: Callable[[Asker], Awaitable[Any]], as_of: AsOf = SHOWN) -> Any:
    async def run() -> Any:
        async with served(node, as_of=as_of) as asker:
            return await ask(asker)

    return asyncio.run(run())


async def list_offset(asker: Asker, name: str, timestamp: int, isolation: int = 0) -> Any:
    topic, partition = split(name)
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
    response = await asker.ask(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics), 10)
    return response.topics[0].partitions[0]


async def fetch(asker: Asker, name: str, offset: int, isolation: int = 0, max_bytes: int = 1 << 20) -> Any:
    topic, partition = split(name)
    asked = FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        isolation_level=isolation,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
    )
    return (await asker.ask(request, 12)).responses[0].partitions[0]


async def read(asker: Asker, name: str, isolation: int = 0, max_bytes: int = 1 << 20) -> list[Record]:
    """All records, markers among them; of committed ones only those, as a consumer does it."""
    offset = (await list_offset(asker, name, -2)).offset
    limit = (await list_offset(asker, name, -1, isolation)).offset
    records: list[Record] = []
    while offset < limit:
        row = await fetch(asker, name, offset, isolation, max_bytes)
        assert row.error_code == 0
        aborted = {(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()}
        for position, header in iterate_batches(row.records):
            is_aborted = any(
                producer == header.producer_id and first <= header.base_offset for producer, first in aborted
            )
            if header.is_control:
                aborted = {pair for pair in aborted if pair[0] != header.producer_id or pair[1] > header.base_offset}
            if isolation == 0 or not (header.is_control or (header.is_transactional and is_aborted)):
                decoded = decode_records(row.records, position, header)
                records += [record for record in decoded if record.offset >= offset]
            last = header.last_offset
        offset = last + 1
    return records


def stored() -> dict[str, list[tuple[Any, ...]]]:
    """Every record of the node's logs from their start offsets on."""
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in expected()["offsets"]}
    for file, batches in golden.data_batches().items():
        name = file.split("/")[1]
        start = expected()["offsets"][name]["start"][1]
        found[name] += [
            (record["offset"], record["timestamp"], record["key"], record["value"])
            for batch in batches
            for record in batch["records"]
            if record["offset"] >= start
        ]
    return found


def shown(records: list[Record]) -> list[tuple[Any, ...]]:
    return [(each.offset, each.timestamp, _hex(each.key), _hex(each.value)) for each in records]


def _hex(field: bytes | None) -> str | None:
    return None if field is None else field.hex()


# --- what is read


@pytest.mark.parametrize("max_bytes", [1 << 20, 1])
def test_every_record_of_every_log_is_served(node: Path, max_bytes: int) -> None:
    async def ask(asker: Asker) -> dict[str, Any]:
        return {name: shown(await read(asker, name, max_bytes=max_bytes)) for name in expected()["offsets"]}

    found = asking(node, ask)
    assert found == stored()
    assert sum(map(len, found.values())) > 800


def test_readers_of_committed_records_see_what_a_consumer_saw(node: Path) -> None:
    async def ask(asker: Asker) -> dict[str, Any]:
        return {name: [each.offset for each in await read(asker, name, 1)] for name in expected()["read_committed"]}

    assert asking(node, ask) == expected()["read_committed"]


def test_offsets_are_those_that_the_cluster_showed(node: Path) -> None:
    places = {"start": START, "end": END, "stable": STABLE, "max_timestamp": MAX_TIMESTAMP}

    async def ask(asker: Asker) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in expected()["offsets"]:
            rows = {place: await list_offset(asker, name, *asked) for place, asked in places.items()}
            found[name] = {
                place: [row.error_code, row.offset, row.timestamp, row.leader_epoch] for place, row in rows.items()
            }
        return found

    assert asking(node, ask) == expected()["offsets"]


def test_a_record_is_found_by_its_time(node: Path) -> None:
    records = stored()["d-gzip-0"]

    async def ask(asker: Asker) -> None:
        for record in records[::7]:
            row = await list_offset(asker, "d-gzip-0", record[1])
            assert (row.offset, row.timestamp) == next((each[0], each[1]) for each in records if each[1] >= record[1])

    asking(node, ask)


def test_leader_epochs_end_where_the_log_has_them_end(node: Path) -> None:
    asked = [
        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
        for epoch in (0, 1, 2, 7)
    ]
    topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="d-txn", partitions=[each]) for each in asked]
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
    response = asking(node, lambda asker: asker.ask(request, 4))
    rows = [row for topic in response.topics for row in topic.partitions]
    assert [(row.error_code, row.leader_epoch, row.end_offset) for row in rows] == [
        *((0, 0, 18), (0, 0, 18), (0, 2, 18), (0, -1, -1)),
    ]


def test_producers_are_those_that_the_cluster_showed(node: Path) -> None:
    topics = [
        DescribeProducersRequest.TopicRequest(name=split(name)[0], partition_indexes=[split(name)[1]])
        for name in expected()["producers"]
    ]
    response = asking(node, lambda asker: asker.ask(DescribeProducersRequest(topics=topics), 0))
    found = {}
    for topic in response.topics:
        (row,) = topic.partitions
        assert row.error_code == 0
        found[f"{topic.name}-{row.partition_index}"] = [
            [
                *(each.producer_id, each.producer_epoch, each.last_sequence),
                *(each.last_timestamp, each.coordinator_epoch, each.current_txn_start_offset),
            ]
            for each in row.active_producers
        ]
    assert found == expected()["producers"]


def test_log_dirs_have_the_sizes_that_the_cluster_showed(node: Path) -> None:
    response = asking(node, lambda asker: asker.ask(DescribeLogDirsRequest(topics=None), 4))
    found = [
        {
            "log_dir": Path(row.log_dir).name,
            "partitions": sorted(
                f"{topic.name}-{each.partition_index}:{each.partition_size}"
                for topic in row.topics
                for each in topic.partitions
            ),
        }
        for row in response.results
    ]
    assert found == [{**row, "partitions": sorted(row["partitions"])} for row in expected()["log_dirs"]]


# --- groups and transactions


def test_groups_are_those_that_the_cluster_showed_with_their_offsets(node: Path) -> None:
    known = groups()

    async def ask(asker: Asker) -> None:
        listed = (await asker.ask(ListGroupsRequest(), 5)).groups
        rows = {each.group_id: (each.protocol_type, each.group_state, each.group_type.lower()) for each in listed}
        assert rows == {name: (row["protocolType"], row["groupState"], row["groupType"]) for name, row in known.items()}
        for name, row in known.items():
            if row["groupType"] == "share":
                continue  # it commits no offsets
            asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None)
            for stable in (False, True):
                fetched = await asker.ask(OffsetFetchRequest(groups=[asked], require_stable=stable), 8)
                offsets = [
                    (
                        topic.name,
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                    )
                    for topic in fetched.groups[0].topics
                    for each in topic.partitions
                ]
                assert sorted(offsets) == sorted(
                    (topic["name"], *list(each.values())[:4])
                    for topic in row["offsets"]
                    for each in topic["partitions"]
                )
            if row["groupType"] == "consumer":
                described = (await asker.ask(ConsumerGroupDescribeRequest(group_ids=[name]), 1)).groups[0]
            else:
                described = (await asker.ask(DescribeGroupsRequest(groups=[name]), 5)).groups[0]
            assert (described.error_code, described.group_state) == (0, row["groupState"])

    assert len(known) == 4
    asking(node, ask)


def test_the_coordinator_of_a_group_is_at_the_address_of_the_node(node: Path) -> None:
    async def ask(asker: Asker) -> None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups()))
        for row in (await asker.ask(request, 4)).coordinators:
            assert (row.error_code, row.node_id) == (0, groups()[row.key]["coordinator"])
            assert (row.host, row.port) == asker.node.addresses["PLAINTEXT"]

    asking(node, ask)


def test_a_group_whose_log_is_not_here_is_not_answered_for(node: Path) -> None:
    other = next(name for name in json.loads(GROUPS.read_text()) if name not in groups())
    response = asking(node, lambda asker: asker.ask(DescribeGroupsRequest(groups=[other]), 5))
    assert response.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_transactions_are_those_that_the_cluster_showed(node: Path) -> None:
    known = [row for row in expected()["transactions"] if partition_for(row[0], 3) in (0, 2)]

    async def ask(asker: Asker) -> None:
        listed = (await asker.ask(ListTransactionsRequest(), 1)).transaction_states
        assert [[each.transactional_id, each.producer_id, each.transaction_state] for each in listed] == known
        request = DescribeTransactionsRequest(transactional_ids=[row[0] for row in known])
        for described, row in zip((await asker.ask(request, 0)).transaction_states, known, strict=True):
            assert [described.transactional_id, described.producer_id, described.transaction_state] == row

    assert len(known) >= 2
    asking(node, ask)


# --- who leads


def test_a_partition_that_is_not_here_is_led_elsewhere_and_an_unknown_one_is_unknown(node: Path) -> None:
    async def ask(asker: Asker) -> None:
        missing = next(
            f"{topic.name}-{index}"
            for topic in asker.node.image.topics.by_id.values()
            for index in range(len(topic.partitions))
            if f"{topic.name}-{index}" not in expected()["offsets"]
        )
        assert (await fetch(asker, missing, 0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await fetch(asker, "d-txn-77", 0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await list_offset(asker, missing, -1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asking(node, ask)


def test_after_the_end_of_the_cluster_what_is_here_has_a_leader(node: Path) -> None:
    async def ask(asker: Asker) -> None:
        metadata = await asker.ask(MetadataRequest(topics=None), 12)
        alive = {each.node_id for each in metadata.brokers}
        leaders = {
            f"{topic.name}-{each.partition_index}": each.leader_id
            for topic in metadata.topics
            for each in topic.partitions
        }
        assert all(leaders[name] in alive for name in expected()["offsets"])
        assert shown(await read(asker, "d-zstd-0" if "d-zstd-0" in stored() else "d-gzip-0"))

    asking(node, ask, EVERYTHING)


def test_topics_that_the_metadata_does_not_know_yet_are_not_shown(node: Path) -> None:
    async def ask(asker: Asker) -> int:
        return sum(1 for _ in asker.node.replicas)

    assert asking(node, ask, AsOf(offset=300)) < asking(node, ask) == len(expected()["offsets"])


# --- what is broken


def test_a_machine_that_crashed_is_served_up_to_what_is_whole(own_node: Path) -> None:
    """No goodbye, no indexes, a torn tail, preallocated indexes, leftovers."""
    for path in [
        *own_node.rglob(".kafka_cleanshutdown"),
        *own_node.rglob("*-checkpoint"),
        *own_node.rglob("*.snapshot"),
    ]:
        path.unlink()
    directory = own_node / "d0" / "d-gzip-0"
    last = max(directory.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-3])
    for index in own_node.rglob("*.index"):
        index.write_bytes(bytes(4096))
    for index in (own_node / "d1").rglob("*.timeindex"):
        index.unlink()
    (directory / "00000000000000000000.log.cleaned").write_bytes(b"x")
    shutil.copytree(directory, own_node / "d0" / "d-gzip-0.00000000000000000000000000000000-delete")
    shutil.copytree(directory, own_node / "d1" / "d-gzip-0.00000000000000000000000000000000-future")
    before = state(own_node)

    async def ask(asker: Asker) -> dict[str, Any]:
        return {name: shown(await read(asker, name)) for name in expected()["offsets"]}

    found, whole = asking(own_node, ask), stored()
    assert 0 < len(found["d-gzip-0"]) < len(whole["d-gzip-0"])
    for name, records in whole.items():
        # The start of a log stood in a checkpoint: without it, deleted records are there again.
        assert records[: len(found[name])] == found[name] or name.startswith("d-del"), name
        assert name == "d-gzip-0" or len(found[name]) >= len(records)
    assert state(own_node) == before


def test_directories_that_cannot_be_written_to_are_served(own_node: Path) -> None:
    paths = [own_node, *own_node.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)

    async def ask(asker: Asker) -> dict[str, Any]:
        return {name: shown(await read(asker, name)) for name in expected()["offsets"]}

    try:
        assert asking(own_node, ask) == stored()
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_log_that_was_being_moved_is_served_from_where_it_was_moved_to(own_node: Path) -> None:
    (own_node / "d0" / "d-gzip-0").rename(own_node / "d1" / "d-gzip-0.0123456789abcdef0123456789abcdef-future")
    found = asking(own_node, lambda asker: read(asker, "d-gzip-0"))
    assert shown(found) == stored()["d-gzip-0"]


def test_a_log_of_another_topic_of_the_same_name_is_not_shown(own_node: Path) -> None:
    path = own_node / "d0" / "d-gzip-0" / "partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACQ")
    row = asking(own_node, lambda asker: fetch(asker, "d-gzip-0", 0))
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_log_that_cannot_be_read_is_one_log(own_node: Path) -> None:
    os.truncate(own_node / "d0" / "d-gzip-0" / "00000000000000000000.log", 2**31)

    async def ask(asker: Asker) -> tuple[int, list[Record]]:
        return (await fetch(asker, "d-gzip-0", 0)).error_code, await read(asker, "d-none-0")

    code, records = asking(own_node, ask)
    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert shown(records) == stored()["d-none-0"]


# --- what is refused


def requests(key: int, version: int) -> Message:
    """The least that names something, so that there is a row to answer."""
    schema = message_class(APIS[key].request).schema()

    def fill(cls: Any, struct: Any) -> Any:
        value = cls()
        for field in struct.fields:
            if version in field.versions and field.is_array and field.is_struct:
                element = getattr(message_class(APIS[key].request), field.type)
                setattr(value, field.name, [fill(element, schema.structs[field.type])])
            elif version in field.versions and field.is_array:
                setattr(value, field.name, ["x"] if field.type == "string" else [0])
        return value

    found: Message = fill(message_class(APIS[key].request), schema.root)
    return found


def codes(value: Any) -> set[int]:
    """Every error code in an answer."""
    found: set[int] = set()
    for name in getattr(type(value), "__slots__", ()):
        inner = getattr(value, name)
        if name.endswith("error_code"):
            found.add(inner)
        for each in inner if isinstance(inner, list) else ():
            found |= codes(each)
    return found


@pytest.mark.parametrize("key", sorted(WRITING_KEYS))
def test_every_write_is_refused(node: Path, key: int) -> None:
    async def ask(asker: Asker) -> None:
        for version in range(served_versions(key).first, served_versions(key).last + 1):
            request = requests(key, version)
            if isinstance(request, ProduceRequest):
                request.acks = 1
                request.topic_data[0].partition_data[0].records = build_batch([Record(0, 1, b"k", b"v")])
            assert POLICY_VIOLATION in codes(await asker.ask(request, version)), (key, version)

    asking(node, ask)


def test_a_producer_is_told_why(node: Path) -> None:
    async def ask(asker: Asker) -> None:
        data = ProduceRequest.PartitionProduceData(index=0, records=build_batch([Record(0, 1, b"k", b"v")]))
        topic = ProduceRequest.TopicProduceData(name="d-none", partition_data=[data])
        row = (await asker.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)).responses[0]
        (partition,) = row.partition_responses
        assert (row.name, partition.error_code) == ("d-none", POLICY_VIOLATION)
        assert "read-only: nothing can be changed" in partition.error_message
        with pytest.raises(asyncio.IncompleteReadError):  # nobody waits for an answer: the connection ends
            await asker.ask(ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic]), 9)

    asking(node, ask)
