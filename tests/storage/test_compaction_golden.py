"""Logs that Apache Kafka 4.3.1 compacted, compacted again here: the same batches, indexes and snapshots.

data/compaction.tar.xz: four partitions (plain: uncompressed; codecs: a producer of each codec; stamped: LogAppendTime; txn:
transactions of several producers, committed and aborted) as a stopped node left them, in three rounds. before1 to before3 are
dirty, after1 to after3 are what the log cleaner made of them; each round goes on with what the last one left. The settings:
internal.segment.bytes=3000, index.interval.bytes=300, delete.retention.ms=20000, compaction without delete.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from barnabas.batches import BatchHeader, Compression, decode_header, decode_records, iterate_batches
from barnabas.storage import Log, LogConfig, TopicPartition
from barnabas.storage.cleanable import CleanerOffsets
from barnabas.storage.loading import segment_offsets
from tests.storage.compacting import clean
from tests.storage.golden import DATA
from tests.storage.made import Clock

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300, delete_retention_ms=20_000, compact=True, delete=False)
TOPICS = ("plain", "codecs", "stamped", "txn")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("compaction")
    with tarfile.open(DATA / "compaction.tar.xz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    return directory


def files(directory: Path) -> dict[str, bytes]:
    """Of the segments of a log, by their names."""
    names = [f"{offset:020d}" for offset in segment_offsets(directory)]
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name[:20] in names}


def batches(content: bytes) -> list[bytes]:
    return [content[at : at + header.size_in_bytes] for at, header in iterate_batches(content)]


def headers(segments: dict[str, bytes]) -> list[BatchHeader]:
    return [
        header for name in sorted(segments) if name.endswith(".log") for _, header in iterate_batches(segments[name])
    ]


def time_of_cleaning(before: dict[str, bytes], after: dict[str, bytes]) -> int:
    """By the delete horizons that the cleaning has set."""
    horizons = {header.delete_horizon_ms for header in headers(after)} - {
        header.delete_horizon_ms for header in headers(before)
    }
    (horizon,) = horizons
    assert horizon is not None
    return horizon - CONFIG.delete_retention_ms


def assert_same_log(ours: bytes, theirs: bytes) -> None:
    """Byte for byte, except for what was compressed anew: Java and C do that differently."""
    assert len(batches(ours)) == len(batches(theirs))
    for our, their in zip(batches(ours), batches(theirs), strict=True):
        header = decode_header(our)
        if header.compression is Compression.NONE or our == their:
            assert our == their
        else:
            wanted = decode_header(their)._replace(batch_length=header.batch_length, crc=header.crc)
            assert header == wanted
            assert decode_records(our) == decode_records(their)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("round", [1, 2, 3])
def test_a_log_is_cleaned_as_kafka_cleans_it(logs: Path, round: int, topic: str) -> None:
    before, after = files(logs / f"before{round}" / topic), files(logs / f"after{round}" / topic)
    clock = Clock(time_of_cleaning(before, after))
    partition = TopicPartition(topic, 0)
    log = Log.open(logs / f"before{round}" / topic, CONFIG, clock=clock, clean_shutdown=True)
    compaction = clean(log, clock, CleanerOffsets(logs / f"before{round}").get(partition))
    assert compaction.end_offset == CleanerOffsets(logs / f"after{round}").get(partition)
    log.close()

    ours = files(log.directory)
    assert ours.keys() == after.keys()
    for name, content in after.items():
        if name.endswith(".log"):
            assert_same_log(ours[name], content)
        elif not (topic == "codecs" and name.endswith(".index")):  # positions follow from sizes
            assert ours[name] == content, name


def test_the_rounds_have_everything_that_compaction_knows(logs: Path) -> None:
    """Tombstones and markers that got their horizon and then went, batches that were emptied, transactions that went on."""
    kinds = []
    for number in (2, 3):
        for state in ("before", "after"):
            found = [header for topic in TOPICS for header in headers(files(logs / f"{state}{number}" / topic))]
            horizons = [header for header in found if header.delete_horizon_ms is not None]
            kinds.append(
                (
                    sum(header.is_control for header in horizons),
                    sum(not header.is_control for header in horizons),
                    sum(not header.records_count for header in found),
                )
            )
    assert all(all(counts) for counts in kinds[1:])
    expired = {
        header.base_offset for header in headers(files(logs / "after2" / "txn")) if header.delete_horizon_ms is not None
    } - {header.base_offset for header in headers(files(logs / "after3" / "txn"))}
    assert expired
    assert list((logs / "after3" / "txn").glob("*.txnindex"))
