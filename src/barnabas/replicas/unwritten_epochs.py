"""Leader epochs that began on this broker and are not in the files of their logs yet. They are written in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.storage import StorageError

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition


class UnwrittenEpochs:
    """The partitions whose epochs have to be written. `spawn` starts a task, `failed` is told of errors of the disk."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        failed: Callable[[Partition, StorageError], None],
    ) -> None:
        self._spawn = spawn
        self._failed = failed
        self._waiting: dict[Partition, None] = {}

    def write_soon(self, partition: Partition) -> None:
        """Write the epochs of a log that this broker starts to lead."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # nobody would have to wait
            partition.log.write_epochs()
            return
        self._waiting[partition] = None
        if len(self._waiting) == 1:
            self._spawn(self._write())

    async def _write(self) -> None:
        while self._waiting:
            # Removed first: an epoch that begins while the file is written is written again.
            partition, _ = self._waiting.popitem()
            opened = partition.opened_log
            if opened is None or partition.is_offline:
                continue
            try:
                await asyncio.to_thread(opened.write_epochs)
            except StorageError as error:
                if opened is partition.opened_log and not partition.is_offline:  # false if it was moved or deleted
                    self._failed(partition, error)
