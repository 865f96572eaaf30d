"""A log beside a list of batches, through any sequence of appends, truncations, deletions and restarts."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.batches import decode_header
from barnabas.storage import LogConfig
from barnabas.storage.offline import check_indexes
from tests.storage.made import batch, open_log

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, segment_index_bytes=96)


class LogAndList(RuleBasedStateMachine):
    """The list has every batch as its bytes; what the log says has to follow from them."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.batches: list[bytes] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.log = open_log(self.directory / "log", CONFIG)

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.directory)

    @rule(
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=3),
        timestamp=st.integers(-1, 50),
        new_epoch=st.booleans(),
    )
    def append(self, sizes: list[int], timestamp: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        values = [b"x" * size for size in sizes]
        times = (timestamp,) * len(values)
        info = self.log.append_as_leader(batch(*values, timestamps=times), self.epoch)
        assert info.base_offset == self.end
        self.batches.append(batch(*values, timestamps=times, base_offset=self.end, epoch=self.epoch))
        self.end += len(values)

    @rule(gap=st.integers(0, 5), count=st.integers(1, 3))
    def append_as_follower(self, gap: int, count: int) -> None:
        sent = []
        for number in range(count):
            sent.append(batch(b"follow", timestamps=(number,), base_offset=self.end + gap, epoch=self.epoch))
            self.end += gap + 1
        self.log.append_as_follower(b"".join(sent))
        self.batches += sent

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: Any) -> None:
        target = data.draw(st.integers(self.start, self.end))
        kept = [stored for stored in self.batches if decode_header(stored).last_offset < target]
        cut = [stored for stored in self.batches[len(kept) :] if decode_header(stored).base_offset < target]
        self.batches = kept
        self.end = decode_header(cut[0]).base_offset if cut else target
        assert self.log.truncate_to(target) == self.end
        self.start = min(self.start, self.end)

    @rule(ahead=st.integers(0, 20))
    def begin_anew(self, ahead: int) -> None:
        if ahead > 17:
            self.start = self.end = self.end + ahead
            self.batches = []
            self.log.truncate_fully_and_start_at(self.end)

    @rule(data=st.data())
    def delete_records(self, data: Any) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start_offset(self.start)
        self.log.delete_old_segments()
        first = self.log.segments[0].base_offset
        gone = [stored for stored in self.batches if decode_header(stored).base_offset < first]
        assert all(decode_header(stored).last_offset < self.start for stored in gone)
        self.batches = self.batches[len(gone) :]

    @rule(clean=st.booleans(), tail=st.binary(max_size=100))
    def reopen(self, clean: bool, tail: bytes) -> None:
        last_base = self.log.segments[-1].base_offset
        if clean:
            self.log.close()
        else:
            self.log.abandon()
            with max((self.directory / "log").glob("*.log")).open("ab") as file:
                file.write(tail)
        self.log = open_log(
            self.directory / "log",
            CONFIG,
            clean_shutdown=clean,
            recovery_point=self.log.recovery_point,
            log_start_offset=self.start,
        )
        # A log ends with its last batch or where its last segment begins: of a gap behind that nothing is left. If it
        # ends before its start offset then, nothing of it was to be seen, and it begins anew.
        self.end = max(decode_header(self.batches[-1]).next_offset if self.batches else 0, last_base)
        if self.end < self.start:
            self.end = self.start
            self.batches = []

    @invariant()
    def agrees(self) -> None:
        log, start = self.log, self.start
        assert (log.log_start_offset, log.log_end_offset) == (start, self.end)
        visible = [stored for stored in self.batches if decode_header(stored).last_offset >= start]
        assert [bytes(data) for _, data in log.batches()] == visible
        assert log.size_in_bytes == sum(map(len, self.batches))
        for segment in log.segments:
            assert not list(check_indexes(log.directory, segment.base_offset))

    @rule(data=st.data())
    def read(self, data: Any) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        max_bytes = data.draw(st.integers(0, 1500))
        max_offset = data.draw(st.one_of(st.none(), st.integers(0, self.end + 2)))
        found = self.log.read(offset, max_bytes, max_offset)
        wanted = [
            stored
            for stored in self.batches
            if decode_header(stored).last_offset >= offset
            and (max_offset is None or decode_header(stored).last_offset < max_offset)
        ]
        if max_offset is not None and offset >= max_offset:
            wanted = []
        assert b"".join(wanted).startswith(found)
        assert bool(found) == bool(wanted)
        assert len(found) <= max(max_bytes, len(wanted[0]) if wanted else 0)

    @rule(timestamp=st.integers(-1, 55))
    def search(self, timestamp: int) -> None:
        found = self.log.offset_for_timestamp(timestamp)
        expected = None
        for stored in self.batches:
            header = decode_header(stored)
            first = max(header.base_offset, self.start)
            if header.max_timestamp >= timestamp and header.last_offset >= first:
                expected = (header.max_timestamp, first, header.partition_leader_epoch)
                break
        if timestamp >= 0:
            assert found == expected

    @rule(epoch=st.integers(0, 30))
    def ends_of_epochs(self, epoch: int) -> None:
        starts: dict[int, int] = {}
        for stored in self.batches:
            header = decode_header(stored)
            starts.setdefault(header.partition_leader_epoch, header.base_offset)
        later = [max(start, self.start) for found, start in starts.items() if found > epoch]
        if later and epoch in starts:
            assert self.log.end_offset_for_epoch(epoch).end_offset == min(later)


TestLogAndList = LogAndList.TestCase
TestLogAndList.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
