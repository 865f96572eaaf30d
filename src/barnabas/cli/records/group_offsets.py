"""The offsets that `barnabas records consume --group` commits.

Its one rule: an offset is committed only after every record before it that was selected has been flushed to standard output. So
a record may be printed twice, after a failure, but none is committed unprinted. A record that a filter skips is committed
together with a later record of its partition that was printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.cli.terminal.output import note
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer
    from barnabas.client.records import TopicPartition

    Place = tuple[str, int]

_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
"""Errors of a commit during a rebalance. The membership joins again in the background."""
_LAST_COMMIT_S = 15.0
_RETRY_S = 0.1


class GroupOffsets:
    """Offsets after the printed records, and their commits. The rebalance listener of its consumer.

    Call `printed` or `skipped` for each record, and `flushed` after each flush of the output.
    """

    def __init__(self, consumer: Consumer, interval_s: float) -> None:
        self._consumer = consumer
        self._interval_s = interval_s
        self._due_s = asyncio.get_running_loop().time() + interval_s
        self._written: dict[Place, int] = {}  # not flushed yet
        self._flushed: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self._skipped: set[Place] = set()  # partitions whose last record was not printed
        self._lock = asyncio.Lock()

    # --- records

    def __contains__(self, place: Place) -> bool:
        """Return whether a record of the partition was printed."""
        return place in self._flushed

    def printed(self, place: Place, offset: int) -> None:
        """Note that a record was written to the output, which is flushed later."""
        self._written[place] = offset + 1
        self._skipped.discard(place)

    def skipped(self, place: Place) -> None:
        """Note that a record was returned by the consumer, but not printed."""
        self._skipped.add(place)

    def flushed(self) -> None:
        """Note that the output was flushed: the records printed so far may be committed."""
        self._flushed |= self._written
        self._written.clear()

    def passed(self, place: Place, position: int) -> None:
        """Note the position of a partition after all returned records were handled.

        Only transaction markers lie between the last record and this position, so that it may be committed too.
        """
        if place not in self._skipped and self._flushed.get(place, position) < position and place not in self._written:
            self._flushed[place] = position

    # --- commits

    async def commit_if_due(self) -> None:
        """Commit if the interval is over. During a rebalance, the next commit repeats it. Raises KafkaError."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self._interval_s
        try:
            await self._commit()
        except KafkaError as error:
            if error.code not in _REBALANCING:
                raise

    async def commit(self) -> None:
        """Commit what was flushed, at the end. Waits for a rebalance to finish. Raises KafkaError."""
        deadline_s = asyncio.get_running_loop().time() + _LAST_COMMIT_S
        while True:
            try:
                await self._commit()
                return
            except KafkaError as error:
                if error.code not in _REBALANCING or asyncio.get_running_loop().time() > deadline_s:
                    raise
            await asyncio.sleep(_RETRY_S)

    async def _commit(self, places: Iterable[Place] | None = None) -> None:
        async with self._lock:
            wanted = {
                place: offset
                for place, offset in self._flushed.items()
                if self._committed.get(place) != offset and (places is None or place in places)
            }
            if wanted:
                await self._consumer.commit(wanted)
                self._committed |= wanted

    # --- the listener

    async def on_partitions_revoked(self, places: list[TopicPartition]) -> None:
        self._consumer.pause(places)  # no more records, so that the commit has all that were printed
        try:
            await self._commit(places)
        except (KafkaError, OSError) as error:
            names = ", ".join(map(str, places))
            note(
                f"the offsets of {names} could not be committed before a rebalance: records will be shown again: {error}"
            )
        self._drop(places)

    def on_partitions_lost(self, places: list[TopicPartition]) -> None:
        if any(self._committed.get(place) != offset for place, offset in self._flushed.items() if place in places):
            names = ", ".join(map(str, places))
            note(f"the group has given {names} to another member before all offsets were committed")
        self._drop(places)

    def _drop(self, places: Iterable[Place]) -> None:
        """Forget partitions: another member commits their offsets from now on."""
        for place in places:
            for offsets in (self._written, self._flushed, self._committed):
                offsets.pop(place, None)
            self._skipped.discard(place)
