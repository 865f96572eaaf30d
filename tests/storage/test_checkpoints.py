"""Checkpoint files, the partition's metadata, and the state of the quorum, against what Kafka wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import (
    StorageError,
    TopicPartition,
    read_offset_checkpoint,
    read_quorum_state,
    read_topic_id,
    write_offset_checkpoint,
    write_quorum_state,
    write_topic_id,
)
from barnabas.storage.checkpoints import read_epoch_checkpoint, write_epoch_checkpoint
from barnabas.wire.primitives import ZERO_UUID, Uuid
from barnabas.wire.records.raft import QuorumStateData
from tests.storage import golden


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.extract_node(tmp_path_factory.mktemp("golden"))


def test_kafkas_checkpoints_are_read_and_written_alike(node: Path, tmp_path: Path) -> None:
    paths = [*node.glob("*/*-offset-checkpoint")]
    assert len(paths) == 8
    for path in paths:
        write_offset_checkpoint(tmp_path / "again", read_offset_checkpoint(path))
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    paths = [*node.glob("*/*/leader-epoch-checkpoint")]
    assert len(paths) > 50
    for path in paths:
        write_epoch_checkpoint(tmp_path / "again", read_epoch_checkpoint(path))
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    found = read_offset_checkpoint(node / "d0" / "log-start-offset-checkpoint")
    assert found == {TopicPartition("d-del", 1): 15}


def test_no_file_and_an_empty_one_have_no_entries(tmp_path: Path) -> None:
    assert read_offset_checkpoint(tmp_path / "none") == {}
    for content in ("", "\0\0\0\0", "0\n", "0\n0\n"):
        (tmp_path / "empty").write_text(content)
        assert read_offset_checkpoint(tmp_path / "empty") == {}
        assert read_epoch_checkpoint(tmp_path / "empty") == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("1\n0\n", "version 1"),
        ("x\n", "line 1: 'x'"),
        ("0\n2\na 0 1\n", "should have 2 entries, but has 1"),
        ("0\n1\na 0\n", "line 3: 'a 0'"),
        ("0\n1\na 0 1 2\n", "line 3"),
        ("0\n1\na b 1\n", "line 3: 'b'"),
        ("\xff\xfe\n", "malformed|not text"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(StorageError, match=complaint):
        read_offset_checkpoint(path)


def test_a_checkpoint_is_replaced_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    write_offset_checkpoint(path, {TopicPartition("a-b.c_d", 3): 2**40})
    write_offset_checkpoint(path, {TopicPartition("a", 0): 1})
    assert path.read_text() == "0\n1\na 0 1\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [*tmp_path.iterdir()] == [path]


def test_a_checkpoint_is_on_disk_before_it_has_its_name_and_then_the_name_is(
    tmp_path: Path, flushed: list[str]
) -> None:
    write_offset_checkpoint(tmp_path / "checkpoint", {})
    write_quorum_state(tmp_path, QuorumStateData(), 1)
    assert flushed == ["checkpoint.tmp", tmp_path.name, "quorum-state.tmp", tmp_path.name]


def test_the_ids_of_topics_are_read_and_written_as_kafka_does(node: Path, tmp_path: Path) -> None:
    for directory in golden.log_directories(node):
        topic_id = read_topic_id(directory)
        assert topic_id is not None
        write_topic_id(tmp_path, topic_id)
        assert (tmp_path / "partition.metadata").read_bytes() == (directory / "partition.metadata").read_bytes()
    assert str(read_topic_id(node / golden.METADATA)) == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_ids_of_topics_in_either_alphabet(tmp_path: Path) -> None:
    topic_id = Uuid(b"\xfb\xef\xbe\xff" * 4)
    for text in (str(topic_id), str(topic_id) + "==", str(topic_id).replace("-", "+").replace("_", "/") + "=="):
        (tmp_path / "partition.metadata").write_text(f"version:0\r\ntopic_id:   {text}\n")
        assert read_topic_id(tmp_path) == topic_id
    (tmp_path / "partition.metadata").unlink()
    assert read_topic_id(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        *("nothing", "version: 0", "version: 0\ntopic_id: x"),
        *("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_partition_metadata_without_an_id_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "partition.metadata").write_text(content)
    with pytest.raises(StorageError):
        read_topic_id(tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(43)])
def test_partition_metadata_that_cut_power_left_empty_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)
    assert read_topic_id(tmp_path) is None


def test_kafkas_quorum_state_is_read_and_written_alike(node: Path, tmp_path: Path) -> None:
    state = read_quorum_state(node / golden.METADATA)
    assert state == QuorumStateData(leader_id=-1, leader_epoch=7, voted_id=-1, voted_directory_id=ZERO_UUID)
    write_quorum_state(tmp_path, state, 1)
    assert (tmp_path / "quorum-state").read_bytes() == (node / golden.METADATA / "quorum-state").read_bytes()
    assert (tmp_path / "quorum-state").stat().st_mode & 0o777 == 0o644


def test_quorum_state_of_version_0_names_the_voters(tmp_path: Path) -> None:
    voters = [QuorumStateData.Voter(voter_id=1), QuorumStateData.Voter(voter_id=2)]
    state = QuorumStateData(leader_id=1, leader_epoch=3, voted_id=-1, current_voters=voters)
    write_quorum_state(tmp_path, state, 0)
    assert (tmp_path / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert read_quorum_state(tmp_path) == state


def test_quorum_state_that_cannot_be_read_is_an_error_and_no_state(tmp_path: Path) -> None:
    assert read_quorum_state(tmp_path) is None
    for content in (
        "",
        "[]",
        "{}",
        '{"leaderId":1,"data_version":2}',
        '{"leaderId":"x","data_version":1}',
        '{"leaderId":',
    ):
        (tmp_path / "quorum-state").write_text(content)
        with pytest.raises(StorageError, match="a vote may be lost"):
            read_quorum_state(tmp_path)
    (tmp_path / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":2,"votedId":-1,"later":[],"data_version":1}\n')
    found = read_quorum_state(tmp_path)
    assert found is not None
    assert (found.leader_id, found.leader_epoch) == (1, 2)
