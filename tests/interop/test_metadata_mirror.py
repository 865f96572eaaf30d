"""barnabas metadata mirror on Apache Kafka: its bytes are those of Kafka's log, it keeps what Kafka cleans up, and is read."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import ApacheKafka

from barnabas.metadata.as_of import EVERYTHING
from barnabas.offline.metadata import load
from barnabas.raft.stored_log import metadata_log_directory
from tests.command_line import Command, Process
from tests.crash.clients import admin, create_topic
from tests.interop.conftest import jars
from tests.interop.side_by_side import ok
from tests.interop.test_lake_metadata import read

pytestmark = pytest.mark.interop

SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "8000",
    "metadata.max.idle.interval.ms": "0",  # no records but those of changes
    "internal.metadata.log.segment.bytes": "16384",
    "internal.metadata.delete.delay.millis": "1000",
}
PARTITIONS = 30  # of a topic: about 3 kB of records
CLEANED_S = 180.0  # Kafka looks once in a minute
metadata = Command("metadata")


@pytest.fixture
def kafka() -> Iterator[ApacheKafka]:
    jars("4.3.1")
    with ApacheKafka(SETTINGS) as node:
        yield node


def until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def segments(log_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(metadata_log_directory(log_dir).glob("*.log"))}


def content(log_dir: Path) -> bytes:
    """All bytes of the log. A copy may have other segments."""
    return b"".join(segments(log_dir).values())


def topics_in(log_dir: Path) -> set[str]:
    return set(load(metadata_log_directory(log_dir), EVERYTHING).image.topics.names)


def test_a_mirror_of_apache_kafka(kafka: ApacheKafka, tmp_path: Path) -> None:
    mirror, theirs = tmp_path / "mirror", kafka.directory / "data"
    first = next(iter(segments(theirs)))
    create_topic(kafka.bootstrap, "first", PARTITIONS)
    (row,) = metadata.rows(kafka, "mirror", mirror, "--until-end")
    assert (row["start_offset"], row["set_aside"]) == (0, [])
    assert content(mirror) == content(theirs)
    late = tmp_path / "late"
    shutil.copytree(mirror, late)  # a mirror that is not started again for long

    with Process("metadata", "mirror", mirror, "-b", kafka.bootstrap, merged=True) as following:
        client = admin(kafka.bootstrap)
        for number in range(12):
            create_topic(kafka.bootstrap, f"topic-{number}", PARTITIONS)
            if number < 11:  # few partitions are left, so that Kafka's restart is short
                client.delete_topics([f"topic-{number}"])[f"topic-{number}"].result(30)
        until(lambda: content(mirror) == content(theirs))
        whole = content(mirror)
        until(lambda: first not in segments(theirs), CLEANED_S)  # Kafka has cleaned up the beginning
        assert content(mirror) == whole
        assert whole.endswith(content(theirs))

        assert kafka.stop() is not None
        following.until("the cluster cannot be reached, trying again")
        kafka.start()
        create_topic(kafka.bootstrap, "after", 1)
        until(lambda: "after" in topics_in(mirror))
        until(lambda: content(mirror).endswith(content(theirs)))
        assert content(mirror).startswith(whole)
        following.stop()
    done = metadata.rows(kafka, "mirror", mirror, "--until-end")[0]
    assert (done["start_offset"], done["set_aside"]) == (0, []), "nothing is missing in between"

    early = content(late)
    (caught_up,) = metadata.rows(kafka, "mirror", late, "--until-end")
    aside = late / f"until-{row['end_offset']}"
    assert caught_up["set_aside"] == [str(aside)], "it goes on with a snapshot of Apache Kafka"
    assert caught_up["start_offset"] > row["end_offset"]
    assert topics_in(late) == topics_in(mirror)
    assert (content(aside), topics_in(aside)) == (early, {"first"})

    kept = content(mirror)
    names = {"first", "topic-11", "after"}
    ok(kafka.tool("kafka-topics", "--delete", "--topic", "first"))
    metadata(kafka, "mirror", mirror, "--until-end", code=0)
    assert set(metadata(None, "ls", mirror, "topics/byName", code=0).stdout.split()) == names - {"first"}
    assert content(mirror).startswith(kept)
    _check_lake(mirror, theirs, kafka)
    _check_served(mirror, tmp_path / "now", names - {"first"})
    _check_served(mirror, tmp_path / "then", {"first"}, "--as-of", str(row["end_offset"] - 1))  # Kafka has forgotten it


def _check_lake(mirror: Path, theirs: Path, kafka: ApacheKafka) -> None:
    """The lake has every record from the first on, and those that Kafka still has are the same."""
    rows = {each["offset"]: each for each in read(path=str(mirror))}
    assert set(rows) == set(range(max(rows) + 1))
    assert {each["committed"] for each in rows.values()} == {True}
    assert {each["cluster_id"] for each in rows.values()} == {kafka.cluster_id}
    left = {each["offset"]: each for each in read(path=str(theirs))}
    assert 0 < len(left) < len(rows)
    assert all((each["record_type"], each["payload"]) == _what(rows[offset]) for offset, each in left.items())


def _what(row: dict[str, object]) -> tuple[object, object]:
    return row["record_type"], row["payload"]


def _check_served(mirror: Path, ready: Path, expected: set[str], *more: str) -> None:
    """A read-only node on the mirror shows these topics."""
    with Process("serve", "--read-only", mirror, *more, "--port", "0", "--ready-file", ready) as process:
        address = process.until_ready(ready)["bootstrap.servers"]
        assert {each["name"] for each in Command("topics").rows(address, "list")} == expected
        process.stop()
