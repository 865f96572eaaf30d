"""Logs that wait to be created, or to be recovered after an unclean shutdown, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage import StorageError
from barnabas.storage.offline import quick_end_of

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition


class UnopenedLogs:
    """The partitions whose logs wait. `to_recover` counts all that had to be recovered, `recovering` those left."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, bool] = {}
        self.to_recover = 0
        self.recovering = 0

    def add(self, partition: Partition, *, recovers: bool) -> None:
        self._waiting[partition] = recovers
        self.to_recover += recovers
        self.recovering += recovers

    def discard(self, partition: Partition) -> None:
        self.recovering -= self._waiting.pop(partition, False)

    def first(self) -> Partition | None:
        return next(iter(self._waiting), None)

    def clear(self) -> None:
        """Forget all that wait, because the broker stops. Those that were not recovered stay counted."""
        self._waiting.clear()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._waiting)


def shorter(logs: Iterable[tuple[Partition, Path, int]]) -> list[Partition]:
    """Return the partitions whose log in a directory ends before an offset, or cannot be read."""
    found = []
    for partition, directory, offset in logs:
        try:
            is_shorter = quick_end_of(directory).offset < offset
        except StorageError:
            is_shorter = True
        if is_shorter:
            found.append(partition)
    return found
