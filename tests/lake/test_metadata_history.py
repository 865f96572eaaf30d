"""The histories that the benchmark makes are metadata logs as a cluster writes them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from bench import metadata_history
from bench.large_history import LargeCluster

from barnabas.batches import decode_records
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.storage.log_dirs import read_meta_properties
from barnabas.storage.offline import OfflineBatch, read_partition
from barnabas.storage.quorum_state import read_quorum_state
from barnabas.wire import decode_record


def batches_of(log_dir: Path) -> list[OfflineBatch]:
    found = list(read_partition(log_dir / "__cluster_metadata-0"))
    assert all(isinstance(each, OfflineBatch) and each.error is None for each in found)
    return [each for each in found if isinstance(each, OfflineBatch)]


def replayed(log_dir: Path) -> tuple[MetadataLoader, Counter[str]]:
    """What the log has come to, and how many records of which kind it has."""
    loader, kinds = MetadataLoader(), Counter[str]()
    for batch in batches_of(log_dir):
        header = batch.header
        values = [record.value or b"" for record in decode_records(bytes(batch.data), 0, header)]
        messages = [] if header.is_control else [decode_record(value).record for value in values]
        kinds.update(type(message).__name__ for message in messages)
        place = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.max_timestamp)
        loader.load([MetadataBatch(*place, messages)])
    return loader, kinds


def test_a_history_can_be_replayed_and_begins_as_a_shorter_one(tmp_path: Path) -> None:
    metadata_history.write(tmp_path / "long", 5_000)
    metadata_history.write(tmp_path / "short", 1_000)
    loader, _ = replayed(tmp_path / "long")
    assert loader.image.provenance.last_contained_offset >= 4_999
    assert len(loader.image.brokers) == len(metadata_history.BROKERS)
    pairs = zip(batches_of(tmp_path / "long"), batches_of(tmp_path / "short"), strict=False)
    assert all(bytes(long.data) == bytes(short.data) for long, short in pairs)
    meta, state = read_meta_properties(tmp_path / "long"), read_quorum_state(tmp_path / "long" / "__cluster_metadata-0")
    assert meta is not None and meta.cluster_id and meta.node_id == 1
    assert state is not None and state.leader_id == 1


class SmallerCluster(LargeCluster):
    partitions = 3_000

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self.events |= {self.restart: 20, self.die: 20}


def test_the_history_of_a_large_cluster_begins_with_all_topics_and_is_mostly_about_restarts(tmp_path: Path) -> None:
    metadata_history.write(tmp_path, 12_000, SmallerCluster)
    loader, kinds = replayed(tmp_path)
    image = loader.image
    assert {broker.rack for broker in image.brokers.values()} == {"a", "b", "c"}
    assert 2_950 <= sum(len(topic.partitions) for topic in image.topics.by_id.values()) <= 3_050
    assert kinds["PartitionChangeRecord"] > 6_000
    assert {
        "RegisterBrokerRecord", "BrokerRegistrationChangeRecord", "RemoveTopicRecord", "ConfigRecord",
        "AccessControlEntryRecord", "ClientQuotaRecord", "UserScramCredentialRecord",
    } <= set(kinds)  # fmt: skip
