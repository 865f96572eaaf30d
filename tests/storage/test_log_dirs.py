"""Log dirs: whose they are, who has them, and what is in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.storage import StorageError, TopicPartition
from barnabas.storage.log_dirs import (
    DirectoryLock,
    DirectoryState,
    MetaProperties,
    check_log_dirs,
    delete_clean_shutdown,
    directory_name,
    had_clean_shutdown,
    list_partitions,
    parse_directory_name,
    read_clean_shutdown_epoch,
    read_meta_properties,
    write_clean_shutdown,
    write_meta_properties,
)
from barnabas.wire.primitives import Uuid
from tests.storage import golden

DIRECTORY_ID = Uuid.parse("AAAAAAAAAAEAAAAAAAAAQQ")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.extract_node(tmp_path_factory.mktemp("golden"))


def formatted(path: Path, cluster_id: str = "cluster", node_id: int = 1, directory_id: str = str(DIRECTORY_ID)) -> Path:
    path.mkdir()
    write_meta_properties(path, MetaProperties(cluster_id, node_id, Uuid.parse(directory_id)), 0)
    return path


def test_meta_properties_are_written_as_kafka_does(node: Path, tmp_path: Path) -> None:
    meta = read_meta_properties(node / "d0")
    assert meta == MetaProperties("Z29sZC1jbHVzdGVyLTAwMQ", 1, DIRECTORY_ID, 1)
    write_meta_properties(tmp_path, meta, 1794771420046)
    assert (tmp_path / "meta.properties").read_bytes() == (node / "d0" / "meta.properties").read_bytes()


def test_meta_properties_are_read_in_any_order_and_version(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert read_meta_properties(tmp_path) is None
    path.write_text("version = 1\r\n  node.id: 7\ncluster.id=a b\ndirectory.id=AAAAAAAAAAEAAAAAAAAAQQ==\nmore=1\n")
    assert read_meta_properties(tmp_path) == MetaProperties("a b", 7, DIRECTORY_ID, 1)
    path.write_text("broker.id=3\n")
    assert read_meta_properties(tmp_path) == MetaProperties(None, 3, version=0)
    path.write_text("version=0\nbroker.id=3\ncluster.id=abc\n")
    assert read_meta_properties(tmp_path) == MetaProperties("abc", 3, version=0)


@pytest.mark.parametrize(
    "content",
    [
        *("version=2\nnode.id=1\ncluster.id=a", "version=1\nnode.id=1", "version=1\ncluster.id=a", "version=x"),
        *("version=1\nnode.id=one\ncluster.id=a", "version=1\nnode.id=1\ncluster.id=a\ndirectory.id=short"),
    ],
)
def test_meta_properties_that_make_no_sense_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(StorageError, match=r"meta\.properties cannot be read"):
        read_meta_properties(tmp_path)


def test_the_log_dirs_of_one_node_agree(node: Path, tmp_path: Path) -> None:
    found = check_log_dirs([node / "d0", node / "d1", tmp_path], node_id=1)
    assert list(found.formatted) == [node / "d0", node / "d1"]
    assert found.empty == (tmp_path,)


def test_log_dirs_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    first = formatted(tmp_path / "first")
    with pytest.raises(StorageError, match="belongs to cluster cluster, not other: remove"):
        check_log_dirs([first], cluster_id="other")
    with pytest.raises(StorageError, match=r"belongs to node 1, not node 2: set node\.id to 1"):
        check_log_dirs([first], node_id=2)
    with pytest.raises(StorageError, match="belongs to cluster else, not cluster"):
        check_log_dirs([first, formatted(tmp_path / "second", cluster_id="else")])
    with pytest.raises(StorageError, match=r"same directory\.id as .*first"):
        check_log_dirs([first, formatted(tmp_path / "third")])
    with pytest.raises(StorageError, match="reserved"):
        check_log_dirs([formatted(tmp_path / "fourth", directory_id="AAAAAAAAAAAAAAAAAAAAAQ")])


def test_a_log_dir_is_locked_against_this_process_and_others(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "dir").mkdir()
    link.symlink_to(tmp_path / "dir")
    program = f"""
from pathlib import Path
from barnabas.storage.log_dirs import DirectoryLock
DirectoryLock(Path({str(link)!r}))
"""
    with DirectoryLock(tmp_path / "dir"):
        with pytest.raises(StorageError, match="is in use"):
            DirectoryLock(link)
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert other.returncode == 1
        assert "is held by another process. Stop it, or use another directory in log.dirs" in other.stderr
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    lock = DirectoryLock(link)
    lock.release()
    lock.release()


def test_a_clean_shutdown_leaves_kafkas_file(node: Path, tmp_path: Path) -> None:
    assert not had_clean_shutdown(tmp_path)
    assert read_clean_shutdown_epoch(tmp_path) is None
    assert read_clean_shutdown_epoch(node / "d0") == 4670
    write_clean_shutdown(tmp_path, 4670)
    name = ".kafka_cleanshutdown"
    assert (tmp_path / name).read_bytes() == (node / "d0" / name).read_bytes()
    for content in ("", "{}", "x", '{"version":0,"brokerEpoch":null}', "[]"):
        (tmp_path / name).write_text(content)
        assert had_clean_shutdown(tmp_path)
        assert read_clean_shutdown_epoch(tmp_path) is None
    delete_clean_shutdown(tmp_path)
    assert not had_clean_shutdown(tmp_path)


@pytest.mark.parametrize(
    ("name", "topic", "partition", "state"),
    [
        ("a-0", "a", 0, ""),
        ("__cluster_metadata-0", "__cluster_metadata", 0, ""),
        ("with-dashes-1-2", "with-dashes-1", 2, ""),
        ("with.dots.v1-12", "with.dots.v1", 12, ""),
        ("-0", None, 0, ""),
        ("a.b-1.0123abcd-delete", "a.b", 1, "-delete"),
        ("a-b-1.0123abcd-future", "a-b", 1, "-future"),
        ("a-1.0123abcd-stray", "a", 1, "-stray"),
        ("x-delete", None, 0, ""),
        ("x-1-delete", None, 0, ""),
        ("x-1.", None, 0, ""),
        ("lost+found", None, 0, ""),
        ("x-", None, 0, ""),
        ("x-1a", None, 0, ""),
        ("x-\u0661", None, 0, ""),
    ],
)
def test_the_names_of_directories(name: str, topic: str | None, partition: int, state: str) -> None:
    expected = None if topic is None else (TopicPartition(topic, partition), DirectoryState(state))
    assert parse_directory_name(name) == expected


def test_names_of_directories_are_made_so_that_they_fit() -> None:
    long = TopicPartition("t" * 249, 7)
    for state in DirectoryState:
        name = directory_name(TopicPartition("a-b", 7), state, "0" * 32)
        assert parse_directory_name(name) == (TopicPartition("a-b", 7), state)
    assert len(directory_name(long, DirectoryState.DELETED, "0" * 32)) == 255
    assert directory_name(long, DirectoryState.FUTURE, "0" * 32).startswith("t" * 249)


def test_the_logs_of_a_log_dir_are_listed(node: Path, tmp_path: Path) -> None:
    listing = list_partitions(node / "d0")
    assert len(listing.partitions) == 32
    assert listing.strangers == ()
    for name in ("a-0", "lost+found", "remote-log-index-cache", "a-1.12ab-delete"):
        (tmp_path / name).mkdir()
    (tmp_path / "file-0").touch()
    listing = list_partitions(tmp_path)
    assert [found.path.name for found in listing.partitions] == ["a-0", "a-1.12ab-delete"]
    assert listing.strangers == (tmp_path / "lost+found",)
