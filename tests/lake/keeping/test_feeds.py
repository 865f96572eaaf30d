"""What is found in directories: log dirs with and without something to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.lake.keeping.feeds import SourceError, find_feeds
from barnabas.lake.tables.all import STREAMS, TRAFFIC


def log_dir(path: Path, *partitions: str) -> Path:
    path.mkdir()
    (path / "meta.properties").write_text("version=1\ncluster.id=some\nnode.id=1\n")
    for name in partitions:
        (path / name).mkdir()
    return path


def test_a_second_log_dir_without_internal_topics_or_without_any_is_accepted(tmp_path: Path) -> None:
    first = log_dir(tmp_path / "d0", "__cluster_metadata-0")
    others = [log_dir(tmp_path / "d1", "orders-0"), log_dir(tmp_path / "d2")]
    (feed,) = find_feeds([first, *others], STREAMS, {})
    assert (feed.stream.source, feed.paths) == ("kafka_metadata", (str(first),))
    feeds = find_feeds([first, *others], (*STREAMS, TRAFFIC), {})
    assert [each.paths for each in feeds] == [(str(first),), (str(others[0]),)]


def test_it_is_an_error_if_there_is_nothing_to_read_or_if_a_directory_is_no_log_dir(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"d1: no partition of __cluster_metadata, .*; records of topics .* --traffic"
    ):
        find_feeds([log_dir(tmp_path / "d1", "orders-0")], STREAMS, {})
    with pytest.raises(SourceError, match=r"directories .*d1, .*d2: no partition of __cluster_metadata"):
        find_feeds([tmp_path / "d1", log_dir(tmp_path / "d2")], STREAMS, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"empty is neither a log dir, nor the directory of a partition"):
        find_feeds([log_dir(tmp_path / "d0", "__cluster_metadata-0"), tmp_path / "empty"], STREAMS, {})
