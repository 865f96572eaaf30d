"""Commits of a consumer: offsets that it keeps in its group, by request and automatically.

APIs: OffsetCommit, OffsetFetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.consuming import offsets as requests
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.coordinated import coordinator_versions
from barnabas.client.errors import ClosedError
from barnabas.client.records import GroupMetadata, OffsetAndMetadata, TopicPartition
from barnabas.client.routing import coordinator
from barnabas.client.shared import begin, end
from barnabas.wire import ErrorCode, KafkaError

_log = logging.getLogger(__name__)

RETRIED = frozenset({ErrorCode.STALE_MEMBER_EPOCH})
"""Errors that are retried although Kafka does not call them retriable: the next heartbeat returns the new epoch."""

NEVER = float("inf")


class Commits:
    """Commits and reads offsets of a group. `member` returns the member that commits."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        states: Mapping[TopicPartition, PartitionState],
        member: Callable[[], GroupMetadata],
        random: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._states = states
        self._member = member
        self._random = random
        self.due_s = NEVER  # time of the next automatic commit
        self._background: asyncio.Task[None] | None = None
        self._automatic: asyncio.Task[None] | None = None

    def require_group_id(self) -> str:
        """Return the id of the group. Raises INVALID_GROUP_ID if the consumer has none."""
        if self._settings.group_id is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group.id is needed to keep offsets")
        return self._settings.group_id

    # --- automatic commits

    def start_interval(self, now_s: float) -> None:
        """Commit automatically after `auto.commit.interval.ms`, if that is enabled."""
        if self._settings.enable_auto_commit:
            self.due_s = now_s + self._settings.auto_commit_interval_ms / 1000

    def commit_automatically(self, now_s: float) -> None:
        """Commit processed offsets in the background, if anything is assigned, and start the next interval.

        A poll does not wait for it, because that could take longer than its timeout. If the last one is not finished yet,
        this one is left out.
        """
        if self._states:
            self.start_interval(now_s)
            if self._automatic is None or self._automatic.done():
                wanted = self._processed(self._states)
                self._automatic = begin(self._commit_after(self._background, wanted))

    async def commit_processed(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit the processed offsets of these partitions. A failure is only logged: the next commit repeats it."""
        wanted = self._processed(partitions)
        await end([self._automatic])  # its request, if it was sent, arrives before the next one
        await self._wait_for_background()
        await self._commit_or_log(wanted)

    def commit_in_background(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit the processed offsets of partitions that are not read any more. Later commits and fetches wait for it."""
        if wanted := self._processed(partitions):
            self._background = begin(self._commit_after(self._background, wanted))

    async def _commit_after(
        self, before: asyncio.Task[None] | None, wanted: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._commit_or_log(wanted)

    async def _wait_for_background(self) -> None:
        running = [task for task in (self._background, self._automatic) if task is not None and not task.done()]
        if running:
            await asyncio.wait(running)

    def _processed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            place: OffsetAndMetadata(state.processed)
            for place in partitions
            if (state := self._states.get(place)) is not None and state.processed is not None
        }

    async def _commit_or_log(self, wanted: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            await self._commit(wanted)
        except (KafkaError, OSError, ClosedError) as error:
            _log.warning("group %s: processed offsets could not be committed: %s", self._settings.group_id, error)

    # --- requests

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets; retries until `default.api.timeout.ms`. Raises `KafkaError`."""
        await self._wait_for_background()
        await self._commit(offsets)

    async def _commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            return
        group_id = self.require_group_id()
        deadline_s = self._deadline_s()
        for attempt in range(1 << 30):
            versions = await coordinator_versions(self._cluster, group_id)
            version = min(versions.best("OffsetCommit") or 0, requests.LAST_COMMIT_WITH_NAMES)
            request = requests.commit_request(self._member(), offsets, version)
            errors = requests.commit_errors(await self._cluster.call(request, coordinator(group_id), version=version))
            if not errors:
                return
            place, code = next(iter(errors.items()))
            if self._is_final(code, deadline_s) or code is ErrorCode.REBALANCE_IN_PROGRESS:
                raise KafkaError(code, f"group {group_id}, {place}: {code.message}")
            await self._back_off(attempt)

    async def committed(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return committed offsets, None where there is none; retries until `default.api.timeout.ms`.

        Raises `KafkaError`.
        """
        places = [TopicPartition(*place) for place in partitions]
        deadline_s = self._deadline_s()
        for attempt in range(1 << 30):
            try:
                return await self.fetch(places)
            except KafkaError as error:
                if self._is_final(error.code, deadline_s):
                    raise
            await self._back_off(attempt)
        raise AssertionError("unreachable: the deadline ends the loop")

    async def fetch(self, places: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return committed offsets as `committed`, without retries. Raises `KafkaError`."""
        group_id = self.require_group_id()
        await self._wait_for_background()
        versions = await coordinator_versions(self._cluster, group_id)
        version = min(versions.best("OffsetFetch") or 0, requests.LAST_FETCH_WITH_NAMES)
        member = self._member()
        if self._settings.group_protocol != "consumer":
            member = GroupMetadata(member.group_id)
        request = requests.fetch_request(member, places, version, require_stable=True)
        response = await self._cluster.call(request, coordinator(group_id), version=version)
        return requests.fetched_offsets(response)

    def _deadline_s(self) -> float:
        return asyncio.get_running_loop().time() + self._cluster.settings.get_int("default.api.timeout.ms") / 1000

    def _is_final(self, code: ErrorCode, deadline_s: float) -> bool:
        is_late = asyncio.get_running_loop().time() > deadline_s
        return is_late or not (code.retriable or code in RETRIED)

    async def _back_off(self, attempt: int) -> None:
        await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)
