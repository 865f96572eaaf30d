"""The transaction index of a segment: aborted transactions, whose records a consumer must skip, by marker offset.

Its one rule: a transaction is in the index of the segment that has its marker, wherever it started, and entries are
ordered by marker. The index can be rebuilt from the log and the producer state at the start of the segment. Most
segments have no aborted transaction, and so no file.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.storage.files import File
from barnabas.storage.producers import ProducerBatch, Producers

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    """An aborted transaction, from its first record to its marker.

    `last_stable_offset` is that of the log after the marker: transactions aborted later start there or after it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The `.txnindex` file of a segment, created with its first entry."""

    __slots__ = ("_size", "base_offset", "dirty", "file")

    def __init__(self, file: File, base_offset: int) -> None:
        self.file = file
        self.base_offset = base_offset
        self.dirty = False
        self._size: int | None = None

    @property
    def size(self) -> int:
        """The length of the entries in bytes, read on first use."""
        if self._size is None:
            self._size = (self.file.find_size() or 0) // _ENTRY.size * _ENTRY.size
        return self._size

    def fault(self) -> str | None:
        """Return why the index must be rebuilt, or None."""
        path, size = self.file.path, self.file.find_size()
        if size and size % _ENTRY.size:
            return f"{path} has {size} bytes, which is not a multiple of {_ENTRY.size}"
        last = self.base_offset - 1
        for version, *fields in _ENTRY.iter_unpack(self._read()):
            transaction = AbortedTxn(*fields)
            if version != _VERSION:
                return f"{path} has an entry of version {version}"
            if transaction.last_offset <= last:
                return f"{path} has the marker at {transaction.last_offset} after {last}"
            last = transaction.last_offset
        return None

    def append(self, transaction: AbortedTxn) -> None:
        size = self.size
        if size == 0:
            self.file.make()
        self.file.write([_ENTRY.pack(_VERSION, *transaction)], size)
        self._size = size + _ENTRY.size
        self.dirty = True

    def transactions(self) -> Iterator[AbortedTxn]:
        """Yield all entries, ordered by marker."""
        return (AbortedTxn(*fields) for _, *fields in _ENTRY.iter_unpack(self._read()))

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """Return the entries with offsets from `fetch_offset` to before `upper_bound`, and whether these are all."""
        if not self.size:
            return [], False
        data = self._read()
        found: list[AbortedTxn] = []
        for slot in range(_first_slot(data, fetch_offset), len(data) // _ENTRY.size):
            transaction = _entry(data, slot)
            if transaction.first_offset < upper_bound:
                found.append(transaction)
            if transaction.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Keep only the transactions whose markers have smaller offsets."""
        if self.size:
            size = _first_slot(self._read(), offset) * _ENTRY.size
            if size < self.size:
                self._size = size
                self.file.truncate(size)
                self.dirty = True

    def reset(self) -> None:
        """Remove all entries, before a rebuild."""
        if self.file.exists():
            self.file.truncate(0)
            self.dirty = True
        self._size = 0

    def flush(self) -> None:
        if self.dirty:
            self.dirty = False
            self.file.fsync()

    def _read(self) -> bytes:
        size = self.size
        return self.file.read(size, 0) if size else b""


def follow(producers: Producers, batch: ProducerBatch, index: TransactionIndex) -> None:
    """Update the producer state with a batch of the segment, and add the transaction that it aborts to the index."""
    completed = producers.update(batch)
    if completed is not None:
        producer_id, first_offset, last_offset, is_aborted = completed
        if is_aborted:
            stable_offset = producers.stable_offset_after(completed)
            index.append(AbortedTxn(producer_id, first_offset, last_offset, stable_offset))
        producers.complete(completed)


def _entry(data: bytes, slot: int) -> AbortedTxn:
    return AbortedTxn._make(_ENTRY.unpack_from(data, slot * _ENTRY.size)[1:])


def _first_slot(data: bytes, offset: int) -> int:
    """Return the slot of the first transaction whose marker is at or after an offset."""
    slots = range(len(data) // _ENTRY.size)
    return bisect_left(slots, offset, key=lambda slot: _entry(data, slot).last_offset)
