"""Finds positions for partitions that have none: the committed offset, or the one that `auto.offset.reset` chooses.

A task runs in the background until all partitions have a position. An error that cannot be retried is kept in `errors`,
and the consumer's next poll raises it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.consuming import offsets as requests
from barnabas.client.consuming.commits import RETRIED, Commits
from barnabas.client.consuming.offset_lookup import OffsetLookup
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.records import OffsetAndMetadata, TopicPartition
from barnabas.client.shared import begin, end
from barnabas.wire import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


class Positions:
    """Positions of the partitions of a consumer. `found` is called when some may have changed."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        states: Mapping[TopicPartition, PartitionState],
        lookup: OffsetLookup,
        commits: Commits,
        random: Callable[[], float],
        news: asyncio.Event,
        found: Callable[[], None],
    ) -> None:
        self.errors: list[Exception] = []
        self._cluster = cluster
        self._settings = settings
        self._states = states
        self._lookup = lookup
        self._commits = commits
        self._random = random
        self._news = news
        self._found = found
        self._task: asyncio.Task[None] | None = None

    def find_soon(self) -> asyncio.Task[None]:
        """Start the task unless it runs, and return it."""
        if self._task is None or self._task.done():
            self._task = begin(self._find())
        return self._task

    async def close(self) -> None:
        await end([self._task])

    def fetch_failed(self, state: PartitionState, code: ErrorCode) -> None:
        """Handle the error of a fetch for one partition. An offset out of range is reset; other errors are kept."""
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._settings.auto_offset_reset == "none":
                text = f"{state.place}: offset {state.fetch_offset} is not there, and auto.offset.reset=none"
                self._keep(KafkaError(code, text))
                state.reset_to = "none"
                state.position = None
                return
            reset = self._settings.auto_offset_reset
            _log.info("%s: offset %d is not there: %s", state.place, state.fetch_offset, reset)
            state.reset(reset)
            self.find_soon()
            return
        error = KafkaError(code, f"{state.place}: {code.message}")
        if str(error) not in map(str, self.errors):
            self.errors.append(error)
        self._news.set()

    def _keep(self, error: Exception) -> None:
        self.errors.append(error)
        self._news.set()

    # --- the task

    async def _find(self) -> None:
        failures = 0
        while True:
            lost = [state for state in self._states.values() if state.position is None and state.reset_to != "none"]
            if not lost:
                return
            try:
                await self._find_committed([state for state in lost if state.reset_to is None])
                await self._find_resets([state for state in lost if state.reset_to is not None])
            except KafkaError as error:
                if not error.code.retriable and error.code not in RETRIED:
                    self._keep(error)
                    return
                failures += 1
                await self._back_off(failures)
            except OSError as error:
                _log.info("positions cannot be found: %s", error)
                failures += 1
                await self._back_off(failures)
            self._found()

    async def _back_off(self, failures: int) -> None:
        await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(failures, self._random()) / 1000)

    async def _find_committed(self, states: list[PartitionState]) -> None:
        """Seek partitions to their committed offsets. Those without one are to be reset."""
        if not states:
            return
        generations = {state: state.generation for state in states}
        known: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self._settings.group_id is not None:
            known = await self._commits.fetch([state.place for state in states])
        for state in states:
            if state.generation != generations[state] or state.position is not None or state.reset_to is not None:
                continue  # the application sought elsewhere meanwhile
            committed = known.get(state.place)
            if committed is not None:
                state.seek(committed.offset)
            elif self._settings.auto_offset_reset == "none":
                state.reset_to = "none"
                text = f"{state.place}: no offset was committed, and auto.offset.reset=none"
                self._keep(KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text))
            else:
                state.reset(self._settings.auto_offset_reset)

    async def _find_resets(self, states: list[PartitionState]) -> None:
        """Seek partitions to the beginning, the end, or a time. After the last record of a time comes the end."""
        times = {}
        for state in states:
            to = state.reset_to
            if to is not None and to.startswith("by_duration"):
                times[state.place] = int(time.time() * 1000) - (self._settings.reset_duration_ms or 0)
            elif to is not None:
                times[state.place] = requests.EARLIEST if to == "earliest" else requests.LATEST
        if not times:
            return
        generations = {state: state.generation for state in states}
        found = await self._lookup.find(times)
        after = [place for place, each in found.items() if each.offset < 0]
        ends = await self._lookup.find(dict.fromkeys(after, requests.LATEST)) if after else {}
        for state in states:
            if state.generation == generations[state] and state.place in found:
                state.seek({**found, **ends}[state.place].offset)
