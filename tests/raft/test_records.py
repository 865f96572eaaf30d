"""Control records: the bytes that Apache Kafka 4.3.1 wrote, and what a log gives back when it is loaded."""

from __future__ import annotations

import pytest

from barnabas import wire
from barnabas.batches import BatchError, build_control_batch, decode_header, decode_records
from barnabas.raft import records
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, EpochStart, MemoryLog, OffsetAndEpoch
from barnabas.raft.ready import RaftConfig
from barnabas.raft.voters import VoterSet
from barnabas.wire.records.control import LeaderChangeMessage, VotersRecord
from tests.raft.harness import Replica, golden
from tests.raft.simulation import START_MS, voter_set
from tests.raft.snapshots import SnapshotBuilder
from tests.raft.test_quorum import VOTERS, leader_of

BYTES = {row["what"]: bytes.fromhex(row["hex"]) for row in golden("control")}


def test_the_first_batch_of_a_log_is_that_of_kafka() -> None:
    batch = BYTES["first batch"]
    header = decode_header(batch)
    leader, version, voters = decode_records(batch)
    ours = build_control_batch(
        [records.leader_change(2, [1, 2, 3], [3, 2]), records.kraft_version(1), records.voters(VOTERS)],
        timestamp=header.base_timestamp,
        base_offset=0,
        partition_leader_epoch=1,
    )
    found = decode_records(ours)
    assert (found[1], found[2]) == (version, voters)
    change, theirs = (wire.decode_record(each.value or b"", LeaderChangeMessage).record for each in (found[0], leader))
    theirs.granting_voters.sort(key=lambda voter: voter.voter_id)  # Kafka lists them as a set has them
    assert change == theirs
    assert len(ours) == len(batch)


def test_a_first_leader_writes_the_voters_of_formatting_into_the_log() -> None:
    replica = leader_of(2, 1)
    batch = replica.log.read(0, 1 << 20)
    header = decode_header(batch)
    assert (header.records_count, header.is_control, header.partition_leader_epoch) == (3, True, 1)
    expected = decode_records(BYTES["first batch"])
    assert [record.value for record in decode_records(batch)[1:]] == [record.value for record in expected[1:]]


def test_a_later_leader_writes_only_that_it_leads() -> None:
    replica = leader_of(2, 1)
    log = replica.log
    again = Replica(2, config=replica.core.config, log=log, election=replica.saved)
    assert again.core.voters.current == VOTERS
    assert again.core.voters.current_offset == 2


def test_a_leader_with_another_address_writes_it_into_the_log() -> None:
    config = RaftConfig(1, voter_set(1).keys[0].wire_directory_id, "c", "CONTROLLER", voter_set(1).listeners_of(1))
    replica = Replica(1, voter_set(1), config=config)
    moved = RaftConfig(1, config.directory_id, "c", "CONTROLLER", voter_set(7).listeners_of(7))
    again = Replica(1, config=moved, log=replica.log, election=replica.saved)
    assert again.core.voters.current.listeners_of(1) == moved.listeners
    assert again.core.voters.current_offset == 5  # after the leader and the kraft.version of the second epoch


def test_the_checkpoint_of_formatting_is_read() -> None:
    log = MemoryLog()
    writer = log.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
    writer.append(BYTES["bootstrap checkpoint"])
    writer.freeze()
    view, history = records.load(log)
    assert (history.current, history.current_offset, history.kraft_version) == (VOTERS, -1, 1)
    assert (view.end, view.snapshot_id) == (OffsetAndEpoch(0, 0), BOOTSTRAP_SNAPSHOT_ID)


def test_a_log_gives_back_its_epochs_and_voters() -> None:
    log = MemoryLog()
    for offset, epoch, voters in ((0, 1, voter_set(1)), (1, 1, voter_set(1, 2)), (2, 4, voter_set(2))):
        log.append(
            build_control_batch(
                [records.voters(voters)], timestamp=START_MS, base_offset=offset, partition_leader_epoch=epoch
            )
        )
    view, history = records.load(log, VoterSet.parse("9@h:1", "C"))
    assert view.end == (3, 4)
    assert view.end_of_epoch(3) == (2, 1)
    assert history.current.ids == {2}
    assert [history.at(offset)[1] for offset in (0, 1, 2)] == [None, voter_set(1), voter_set(1, 2)]
    assert log.epochs() == [EpochStart(1, 0), EpochStart(4, 2)]


def test_a_snapshot_is_read_in_pieces_and_a_damaged_one_is_refused() -> None:
    builder = SnapshotBuilder(OffsetAndEpoch(10, 3))
    values = [b"%d" % number for number in range(50)]
    parts = [builder.header(1, 2, 1, voter_set(1, 2)), *(builder.records([value], 3) for value in values)]
    parts.append(builder.footer(4))

    def load(data: bytes) -> list[bytes | None]:
        log = MemoryLog()
        writer = log.create_snapshot(OffsetAndEpoch(10, 3))
        writer.append(data)
        writer.freeze()
        snapshot = log.open_snapshot(OffsetAndEpoch(10, 3))
        assert snapshot is not None
        batches = list(records.snapshot_batches(snapshot, 7))
        assert records.last_contained_log_timestamp(batches[0][1]) == 2
        return [record.value for header, found in batches for record in found if not header.is_control]

    whole = b"".join(parts)
    assert load(whole) == values
    with pytest.raises(BatchError):
        load(whole[:-1])
    with pytest.raises(BatchError):
        damaged = len(parts[0]) + len(parts[1]) - 2
        load(whole[:damaged] + bytes([whole[damaged] ^ 1]) + whole[damaged + 1 :])


def test_a_log_that_starts_where_no_snapshot_ends_is_refused() -> None:
    log = MemoryLog()
    log.trim(OffsetAndEpoch(5, 1))
    with pytest.raises(ValueError, match="no snapshot ends there"):
        records.load(log)


def test_voters_survive_their_record() -> None:
    record = VOTERS.to_record()
    data = wire.encode_record(record, 0)
    assert VoterSet.from_record(wire.decode_record(data, VotersRecord).record) == VOTERS
