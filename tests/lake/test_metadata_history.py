"""The histories that the benchmark makes are metadata logs as a cluster writes them."""

from __future__ import annotations

from pathlib import Path

from bench import metadata_history

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


def test_a_history_can_be_replayed_and_begins_as_a_shorter_one(tmp_path: Path) -> None:
    metadata_history.write(tmp_path / "long", 5_000)
    metadata_history.write(tmp_path / "short", 1_000)
    loader = MetadataLoader()
    for batch in batches_of(tmp_path / "long"):
        header = batch.header
        values = [record.value or b"" for record in decode_records(bytes(batch.data), 0, header)]
        messages = [] if header.is_control else [decode_record(value).record for value in values]
        place = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.max_timestamp)
        loader.load([MetadataBatch(*place, messages)])
    assert loader.image.provenance.last_contained_offset >= 4_999
    assert len(loader.image.brokers) == len(metadata_history.BROKERS)
    pairs = zip(batches_of(tmp_path / "long"), batches_of(tmp_path / "short"), strict=False)
    assert all(bytes(long.data) == bytes(short.data) for long, short in pairs)
    meta, state = read_meta_properties(tmp_path / "long"), read_quorum_state(tmp_path / "long" / "__cluster_metadata-0")
    assert meta is not None and meta.cluster_id and meta.node_id == 1
    assert state is not None and state.leader_id == 1
