"""DescribeLogDirs (35), AlterReplicaLogDirs (34), DescribeProducers (61), and the node's log dirs behind them."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import Record, build_batch
from barnabas.broker.node import Node
from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.replicas.log_directories import LogDirectories
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.errors import StorageError
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.records.metadata import PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, allow, image_before, params, topic
from tests.metadata import golden
from tests.storage.made import validated

D0, D1 = Uuid(b"0" * 16), Uuid(b"1" * 16)
T = Uuid(b"t" * 16)
GOLD_D0 = {
    1: "AAAAAAAAAAEAAAAAAAAAQQ",
    2: "AAAAAAAAAAIAAAAAAAAAQg",
    3: "AAAAAAAAAAMAAAAAAAAAQw",
    4: "R5vibA6r7iPTvB7fdpEcDg",
}


def in_directory(name: str, topic_id: Uuid, *directories: Uuid, replica: int = 1) -> list[Message]:
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    for index, directory in enumerate(directories):
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=[replica],
                isr=[replica],
                leader=replica,
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory],
            )
        )
    return records


class TwoDirs:
    """A node with two log dirs on disk; `put` makes the directory of a partition as Kafka leaves it."""

    def __init__(self, folder: Path) -> None:
        self.d0, self.d1 = folder / "d0", folder / "d1"
        for each in (self.d0, self.d1):
            each.mkdir()

    def node(self, records: list[Message], more: dict[str, str] | None = None, **given: Any) -> MemoryNode:
        properties = {"log.dirs": f"{self.d0},{self.d1}", **(more or {})}
        return MemoryNode(properties, records=records, directory_ids={self.d0: D0, self.d1: D1}, **given)

    def put(self, log_dir: Path, name: str, *segments: int) -> None:
        (log_dir / name).mkdir()
        for number, size in enumerate(segments):
            (log_dir / name / f"{number:020}.log").write_bytes(b"x" * size)
            (log_dir / name / f"{number:020}.index").write_bytes(b"not counted")


@pytest.fixture
def dirs(tmp_path: Path) -> TwoDirs:
    return TwoDirs(tmp_path)


def seen(response: DescribeLogDirsResponse) -> list[tuple[str, list[tuple[str, int, int, int, bool]]]]:
    return [
        (
            Path(row.log_dir).name,
            [
                (t.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
                for t in row.topics
                for p in t.partitions
            ],
        )
        for row in response.results
    ]


# --- as Kafka answered


@pytest.mark.parametrize("capture", params("AlterReplicaLogDirs"))
def test_kafka_s_answers_about_moves(capture: Capture, dirs: TwoDirs) -> None:
    """The directories are those of the test."""
    records = [*in_directory("r-dirs", T, D1), *topic("e-unclean", Uuid(b"e" * 16), [2])]
    node = dirs.node(records, brokers=4, authorizer=AUTHORIZER)
    request = bytes.fromhex(capture.request_hex)
    for ours in (dirs.d0, dirs.d1):
        theirs = f"/var/lib/kafka-gold/node1/{ours.name}".encode()
        request = _with_path(request, theirs, str(ours).encode(), flexible=capture.version >= 2)
    assert capture._replace(request_hex=request.hex()).ask(node) == capture.answer
    if capture.case == "move":
        (future,) = dirs.d0.iterdir()
        assert future.name.startswith("r-dirs-0.") and future.name.endswith("-future")


def _with_path(request: bytes, theirs: bytes, ours: bytes, *, flexible: bool) -> bytes:
    """A string and its length: an int16, or a varint of one more."""

    def written(text: bytes) -> bytes:
        size = bytearray()
        left = len(text) + 1
        while flexible and left > 0x7F:
            size.append(left & 0x7F | 0x80)
            left >>= 7
        return bytes([*size, left]) + text if flexible else len(text).to_bytes(2) + text

    return request.replace(written(theirs), written(ours))


@pytest.mark.parametrize("capture", params("DescribeLogDirs"))
def test_kafka_s_rows_of_log_dirs(capture: Capture, dirs: TwoDirs) -> None:
    """The same directories, topics and partitions; sizes and free space are those of another disk."""
    gold = Uuid.parse(GOLD_D0[capture.node])
    offset = golden.expected()["metadata_offset_before"] + 1
    image = image_before(offset)
    other = next(each for each in image.brokers[capture.node].log_dirs if each != gold)
    if capture.phase == "5-final":
        records: list[Message] = []
    else:
        image, records = None, _records_of(capture.response, gold, other)  # type: ignore[assignment]
    properties = {"log.dirs": f"{dirs.d0},{dirs.d1}", "node.id": str(capture.node)}
    if capture.case == "cordoned log dir":
        properties["cordoned.log.dirs"] = str(dirs.d1)
    ids = {dirs.d0: gold, dirs.d1: other}
    node = MemoryNode(properties, image=image, records=records, brokers=4, directory_ids=ids)
    ours, theirs = capture.decode(capture.ask(node)), capture.response
    assert ours.error_code == theirs.error_code == 0
    assert [row.is_cordoned for row in ours.results] == [row.is_cordoned for row in theirs.results]
    assert [row.total_bytes > 0 for row in ours.results] == [row.total_bytes > 0 for row in theirs.results]
    for our_dir, their_dir in zip(seen(ours), seen(theirs), strict=True):
        assert our_dir[0] == their_dir[0]
        assert [row[:2] + row[3:] for row in our_dir[1]] == sorted(row[:2] + row[3:] for row in their_dir[1])


def _records_of(response: DescribeLogDirsResponse, d0: Uuid, d1: Uuid) -> list[Message]:
    """Topics that are where the answer has them; partitions that it does not have are elsewhere."""
    places: dict[str, dict[int, Uuid]] = {}
    for row, directory in zip(response.results, (d0, d1), strict=True):
        for each in row.topics:
            places.setdefault(each.name, {}).update({p.partition_index: directory for p in each.partitions})
    records: list[Message] = []
    node_id = next(n for n, text in GOLD_D0.items() if Uuid.parse(text) == d0)
    for number, (name, by_index) in enumerate(places.items()):
        topic_id = Uuid(bytes([number + 1]) * 16)
        records.append(TopicRecord(name=name, topic_id=topic_id))
        for index in range(max(by_index) + 1):
            replica = node_id if index in by_index else node_id % 4 + 1
            directories = [by_index.get(index, D0)]
            records.append(
                PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=[replica], isr=[replica], directories=directories
                )
            )
    return records


# --- DescribeLogDirs


@pytest.mark.parametrize("version", range(6))
def test_logs_on_disk_are_listed_with_the_size_of_their_segments(dirs: TwoDirs, version: int) -> None:
    dirs.put(dirs.d0, "t-0", 100, 20)
    dirs.put(dirs.d1, "t-0.00000000000000000000000000000000-future", 7)
    dirs.put(dirs.d1, "gone-3", 5)
    dirs.put(dirs.d1, "t-1.00000000000000000000000000000000-delete", 5)
    dirs.put(dirs.d0, "__cluster_metadata-0", 5)
    node = dirs.node(in_directory("t", T, D0, D1))
    response = node.call(DescribeLogDirsRequest(topics=None), version)
    assert seen(response) == [
        ("d0", [("t", 0, 120, 0, False)]),
        ("d1", [("gone", 3, 5, -1, False), ("t", 0, 7, -1, True), ("t", 1, 0, 0, False)]),
    ]
    if version >= 4:
        space = os.statvfs(dirs.d0)
        assert response.results[0].total_bytes == space.f_blocks * space.f_frsize
        assert 0 < response.results[0].usable_bytes <= response.results[0].total_bytes


def test_only_the_partitions_that_were_asked_for_are_listed_and_each_once(dirs: TwoDirs) -> None:
    dirs.put(dirs.d0, "t-0", 1)
    node = dirs.node([*in_directory("t", T, D0, D0, D1), *in_directory("other", D0, D0)])
    asked = DescribeLogDirsRequest.DescribableLogDirTopic
    request = DescribeLogDirsRequest(
        topics=[asked(topic="t", partitions=[2, 0, 0, 9]), asked(topic="nope", partitions=[0])]
    )
    assert seen(node.call(request, 4)) == [("d0", [("t", 0, 1, 0, False)]), ("d1", [("t", 2, 0, 0, False)])]


def test_a_replica_of_a_node_with_one_log_dir_is_there_whatever_its_id(tmp_path: Path) -> None:
    node = MemoryNode({"log.dirs": str(tmp_path)}, records=topic("t", T, [1]))
    assert seen(node.call(DescribeLogDirsRequest(topics=None), 1))[0][1] == [("t", 0, 0, 0, False)]


@pytest.mark.parametrize("version", range(6))
def test_a_log_dir_that_fails_is_a_storage_error_and_stays_offline(dirs: TwoDirs, version: int) -> None:
    node = dirs.node(in_directory("t", T, D0, D1))
    shutil.rmtree(dirs.d1)
    response = node.call(DescribeLogDirsRequest(topics=None), version)
    assert [row.error_code for row in response.results] == [0, 56]
    assert (response.results[1].topics, response.results[1].total_bytes) == ([], -1)
    dirs.d1.mkdir()
    assert node.call(DescribeLogDirsRequest(topics=None), version).results[1].error_code == 56
    assert node.log_directories.offline_ids == [D1]
    assert node.log_directories.ids == [D0]


def test_cordoned_log_dirs_are_shown_when_the_cluster_knows_of_them(dirs: TwoDirs) -> None:
    for text, expected in ((str(dirs.d1), [False, True]), ("*", [True, True]), ("", [False, False])):
        node = dirs.node([], {"cordoned.log.dirs": text})
        response = node.call(DescribeLogDirsRequest(topics=None), 5)
        assert [row.is_cordoned for row in response.results] == expected
    old = dirs.node([], {"cordoned.log.dirs": "*"}, features={"metadata.version": 29})
    assert [row.is_cordoned for row in old.call(DescribeLogDirsRequest(topics=None), 5).results] == [False, False]


def test_who_may_not_describe_the_cluster_gets_no_rows(dirs: TwoDirs) -> None:
    node = dirs.node([], authorizer=AuthorizerSettings(enabled=True))
    for version in range(6):
        response = node.call(DescribeLogDirsRequest(topics=None), version, principal=ALICE)
        assert (response.error_code, response.results) == (31 if version >= 3 else 0, [])


# --- AlterReplicaLogDirs

Dir = AlterReplicaLogDirsRequest.AlterReplicaLogDir
Moved = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic


def alter(node: MemoryNode, *moves: tuple[Path | str, str, list[int]], version: int = 2, **peer: Any) -> Any:
    asked = [Dir(path=str(path), topics=[Moved(name=name, partitions=indexes)]) for path, name, indexes in moves]
    response = node.call(AlterReplicaLogDirsRequest(dirs=asked), version, **peer)
    return [(t.topic_name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.results]


@pytest.mark.parametrize("version", range(3))
def test_a_choice_for_a_replica_that_is_not_here_yet_is_remembered(dirs: TwoDirs, version: int) -> None:
    node = dirs.node([*in_directory("t", T, D0), *in_directory("far", D1, D0, replica=2)])
    answer = alter(node, (dirs.d1, "soon", [0]), (dirs.d0, "far", [0]), (dirs.d0, "t", [0, 7]), version=version)
    assert answer == [("soon", [(0, 3)]), ("far", [(0, 9)]), ("t", [(0, 0), (7, 3)])]
    chosen = node.log_directories.chosen
    assert chosen(TopicPartition("soon", 0)) == str(dirs.d1)
    assert chosen(TopicPartition("far", 0)) == str(dirs.d0)
    assert chosen(TopicPartition("t", 0)) is None


def test_where_the_log_is_on_disk_counts_more_than_where_the_cluster_has_it(dirs: TwoDirs) -> None:
    dirs.put(dirs.d1, "t-0", 1)
    node = dirs.node(in_directory("t", T, D0))
    assert alter(node, (dirs.d1, "t", [0])) == [("t", [(0, 0)])]
    assert node.replicas.moves.get(node.replicas.partition("t", 0)) is None
    assert alter(node, (dirs.d0, "t", [0])) == [("t", [(0, 0)])]
    assert node.replicas.moves.get(node.replicas.partition("t", 0)) is not None


def test_a_move_is_shown_with_what_it_lacks_until_it_is_done(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0))
    partition = node.replicas.partition("t", 0)
    for _ in range(3):
        partition.append(validated(build_batch([Record(0, 1, b"k", b"v")])))
    size = partition.log.size_in_bytes
    assert alter(node, (dirs.d1, "t", [0])) == [("t", [(0, 0)])]
    described = seen(node.call(DescribeLogDirsRequest(topics=None), 4))
    assert described == [("d0", [("t", 0, size, 0, False)]), ("d1", [("t", 0, 0, 3, True)])]
    move(node)
    assert seen(node.call(DescribeLogDirsRequest(topics=None), 4)) == [("d0", []), ("d1", [("t", 0, size, 0, False)])]


def move(node: MemoryNode) -> None:
    """Until all moves are done."""

    async def run() -> None:
        while list(node.replicas.moves):
            await node.replicas.moves.advance()

    asyncio.run(run())


def test_a_move_is_given_up_by_one_to_where_the_replica_is(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0))
    assert alter(node, (dirs.d1, "t", [0])) == [("t", [(0, 0)])]
    assert alter(node, (dirs.d1, "t", [0])) == [("t", [(0, 0)])]  # which it is doing
    assert alter(node, (dirs.d0, "t", [0])) == [("t", [(0, 0)])]
    assert not list(node.replicas.moves)
    assert seen(node.call(DescribeLogDirsRequest(topics=None), 4)) == [("d0", [("t", 0, 0, 0, False)]), ("d1", [])]


def test_nothing_is_moved_while_a_log_dir_is_offline(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.mkdir()
    ids = dict(zip(paths, (D0, D1, T), strict=True))
    properties = {"log.dirs": ",".join(map(str, paths))}
    node = MemoryNode(properties, records=in_directory("t", T, D0), directory_ids=ids)
    node.log_directories.fail(str(paths[2]), "a test")
    assert alter(node, (paths[1], "t", [0])) == [("t", [(0, 56)])]


def test_of_a_partition_that_is_named_twice_the_last_directory_counts(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0))
    assert alter(node, (dirs.d0, "t", [0]), ("/nope", "t", [0])) == [("t", [(0, 57)])]


def test_the_name_stands_before_the_directory_and_the_directory_before_the_partition(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0), {"cordoned.log.dirs": str(dirs.d1)})
    assert alter(node, ("/nope", "x" * 214, [0]), ("/nope", "x" * 213, [0])) == [
        ("x" * 214, [(0, 17)]),
        ("x" * 213, [(0, 57)]),
    ]
    assert alter(node, (dirs.d1, "nope", [0])) == [("nope", [(0, 39)])]
    node.log_directories.fail(str(dirs.d1), "a test")
    assert alter(node, (dirs.d1, "nope", [0])) == [("nope", [(0, 56)])]


def test_a_replica_in_a_log_dir_that_has_failed_is_not_moved(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0))
    node.log_directories.fail(str(dirs.d0), "a test")
    assert alter(node, (dirs.d1, "t", [0])) == [("t", [(0, 56)])]


def test_who_may_not_alter_the_cluster_is_refused_on_each_partition(dirs: TwoDirs) -> None:
    node = dirs.node(in_directory("t", T, D0), authorizer=AuthorizerSettings(enabled=True))
    refused = alter(node, (dirs.d1, "t", [0, 0]), (dirs.d0, "t", [1]), principal=ALICE)
    assert refused == [("t", [(0, 31), (0, 31)]), ("t", [(1, 31)])]
    assert node.log_directories.chosen(TopicPartition("t", 0)) is None


# --- DescribeProducers


def test_producers_of_each_partition_that_was_asked_for(dirs: TwoDirs) -> None:
    records = [*in_directory("t", T, D0, D0, D1), *in_directory("far", D1, D0, replica=2)]
    node = dirs.node([*records, allow("User:alice", AclOperation.READ, ResourceType.TOPIC, "t")], authorizer=AUTHORIZER)
    node.log_directories.fail(str(dirs.d1), "a test")
    asked = DescribeProducersRequest.TopicRequest
    topics = [
        asked(name="t", partition_indexes=[2, 0, 0, 1, 9]),
        asked(name="far", partition_indexes=[0]),
        asked(name="nope", partition_indexes=[0]),
        asked(name="t", partition_indexes=[]),
    ]
    response = node.call(DescribeProducersRequest(topics=topics), 0)
    rows = [
        (t.name, [(p.partition_index, p.error_code, p.error_message) for p in t.partitions]) for t in response.topics
    ]
    assert rows == [
        ("t", [(2, 56, None), (0, 0, None), (0, 0, None), (1, 0, None), (9, 3, None)]),
        ("far", [(0, 6, None)]),
        ("nope", [(0, 3, "This server does not host this topic-partition.")]),
        ("t", []),
    ]
    refused = node.call(DescribeProducersRequest(topics=topics[:3]), 0, principal=ALICE)
    codes = [[p.error_code for p in t.partitions] for t in refused.topics]
    assert codes == [[56, 0, 0, 0, 3], [29], [29]]
    assert refused.topics[1].partitions[0].error_message == "Topic authorization failed."


# --- the directories themselves


def test_a_metadata_log_dir_of_its_own_is_no_log_dir(tmp_path: Path) -> None:
    config = server.load(None, {"log.dirs": f"{tmp_path}/a", "metadata.log.dir": f"{tmp_path}/m"})
    directories = LogDirectories(lambda: config, {tmp_path / "a": D0, tmp_path / "m": D1})
    assert directories.paths == (f"{tmp_path}/a",)
    assert directories.ids == [D0]
    with pytest.raises(StorageError, match="No such file"):
        directories.usage(f"{tmp_path}/a")


def test_cordoning_a_directory_of_a_running_node_reaches_the_registration(tmp_path: Path) -> None:
    async def run() -> None:
        properties = {
            "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "broker.heartbeat.interval.ms": "60000",
            "broker.session.timeout.ms": "120000",
        }
        node = Node(server.load(None, properties))
        await node.start()
        try:
            assert node.image.brokers[1].cordoned_log_dirs == ()
            connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
            request = IncrementalAlterConfigsRequest
            change = request.AlterableConfig(name="cordoned.log.dirs", value=f"{tmp_path}/b")
            resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
            response = await connection.call(request(resources=[resource]), 1)
            assert response.responses[0].error_code == 0
            async with asyncio.timeout(5):
                while not node.image.brokers[1].cordoned_log_dirs:
                    await asyncio.sleep(0.01)
            assert node.image.brokers[1].cordoned_log_dirs == tuple(node.log_directories.cordoned_ids)
            described = await connection.call(DescribeLogDirsRequest(topics=None), 5)
            assert [row.is_cordoned for row in described.results] == [False, True]
            connection.close()
        finally:
            await node.stop()

    asyncio.run(run())
