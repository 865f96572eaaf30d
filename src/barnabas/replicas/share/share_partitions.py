"""The share partitions of a broker, and the members of share groups that consume them here.

Its one rule: a share partition is in the table while this broker leads its partition and somebody uses it. It is loaded
when it is first fetched; when another broker leads, when its state is fenced, or when the group has no session here any
more, it is dropped, and loaded again the next time. What a member has acquired is released with its session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicas.share.fetching import Fetched, Fetching, ShareFetch
from barnabas.replicas.share.led import Counters, LedSharePartition, ShareKey, Shell
from barnabas.replicas.share.sessions import MemberKey, PartitionKey, Session, Sessions
from barnabas.replicas.share.share_partition import Acknowledged, Acquired
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.share_state.settings import ShareSettings, share_settings
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition
    from barnabas.replicas.replicas import Replicas
    from barnabas.replicated.scheduler import Scheduler
    from barnabas.share_state.persister import Persister

_log = logging.getLogger(__name__)


class SharePartitions:
    """The table. `led` and `image_changed` pass on changes of leadership and metadata."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        replicas: Callable[[], Replicas],
        scheduler: Scheduler,
        monotonic_ms: Callable[[], int],
        persister: Persister,
    ) -> None:
        self.sessions = Sessions(
            lambda: config().get_int("group.share.max.share.sessions"),
            lambda: config().get_int("barnabas.share.session.max.partitions"),
        )
        self.counters = Counters()
        self._config = config
        self._image = image
        self._replicas = replicas
        self._table: dict[ShareKey, LedSharePartition] = {}
        self._by_replica: dict[tuple[str, int], dict[ShareKey, None]] = {}
        self._settings: dict[str, tuple[Any, Any, ShareSettings]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._shell = Shell(
            persister, self.settings, monotonic_ms, scheduler.now_ms, scheduler.call_later, self._ended, self.counters
        )

    def __len__(self) -> int:
        return len(self._table)

    def all(self) -> list[LedSharePartition]:
        return list(self._table.values())

    def get(self, key: ShareKey) -> LedSharePartition | None:
        return self._table.get(key)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for led in self.all():
            led.end()

    def settings(self, group_id: str) -> ShareSettings:
        """Return the settings of a group, as they are now."""
        config, of_group = self._config(), self._image().config(ConfigResourceType.GROUP, group_id)
        known = self._settings.get(group_id)
        if known is None or known[0] is not config or known[1] is not of_group:
            known = config, of_group, share_settings(config, of_group)
            if self.sessions.has_any(group_id):  # clients choose the ids of groups
                self._settings[group_id] = known
        return known[2]

    # --- requests

    async def fetch(
        self, group_id: str, asked: ShareFetch, partitions: Sequence[tuple[PartitionKey, str]]
    ) -> dict[PartitionKey, Fetched]:
        """Acquire records of partitions, with the names of their topics, and return the answers of those that have one."""
        failed: dict[PartitionKey, Fetched] = {}
        found: list[LedSharePartition] = []
        others_first = Breather()
        if not asked.max_records or not asked.max_bytes:
            return {}
        for key, topic in partitions:
            await others_first()
            try:
                found.append(self._led(group_id, key, topic))
            except KafkaError as error:
                failed[key] = Fetched(error)
        answers = failed
        if found:
            answers = await Fetching(self._replicas(), asked, found).run() | failed
        traffic, names = self._replicas().traffic, dict(partitions)
        for name in dict.fromkeys(names.values()):
            traffic.get(name).share_fetch_requests += 1
        for name in dict.fromkeys(names[key] for key, answer in answers.items() if answer.error is not None):
            traffic.get(name).failed_share_fetch_requests += 1
        return answers

    async def acknowledge(
        self, member: MemberKey, partitions: Iterable[tuple[PartitionKey, Sequence[Acknowledged]]]
    ) -> dict[PartitionKey, KafkaError | None]:
        """Change the states of records that a member has acquired, and return the partitions with their errors."""
        wanted = dict(partitions)
        found = await asyncio.gather(*(self._acknowledge(member, key, rows) for key, rows in wanted.items()))
        errors = dict(zip(wanted, found, strict=True))
        traffic, topics = self._replicas().traffic, self._image().topics.by_id
        names = {key: topics[key.topic_id].name if key.topic_id in topics else "" for key in errors}
        for name in dict.fromkeys(names.values()):
            traffic.get(name).share_acknowledge_requests += 1
        for name in dict.fromkeys(names[key] for key, error in errors.items() if error is not None):
            traffic.get(name).failed_share_acknowledge_requests += 1
        return errors

    async def _acknowledge(
        self, member: MemberKey, key: PartitionKey, acknowledged: Sequence[Acknowledged]
    ) -> KafkaError | None:
        led = self._table.get(ShareKey(member.group_id, *key))
        if led is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            await led.acknowledge(member.member_id, acknowledged)
        except KafkaError as error:
            return error
        self._count(acknowledged)
        led.wake()
        return None

    def give_back(self, member: MemberKey, key: PartitionKey, acquired: Iterable[Acquired]) -> None:
        """Undo the acquisition of records that are not sent to the member."""
        led = self._table.get(ShareKey(member.group_id, *key))
        if led is not None and led.state is not None:
            led.state.undo(member.member_id, acquired)
            led.wake()

    def _count(self, acknowledged: Sequence[Acknowledged]) -> None:
        counts = self.counters.acknowledged
        for first, last, types in acknowledged:
            if len(types) == 1:
                counts[types[0]] = counts.get(types[0], 0) + last - first + 1
            else:
                for kind in types:
                    counts[kind] = counts.get(kind, 0) + 1

    # --- members that leave

    def close(self, member: MemberKey) -> None:
        """End the session of a member, and release in the background what it has acquired."""
        session = self.sessions.remove(member)
        if not self.sessions.has_any(member.group_id):
            self._settings.pop(member.group_id, None)
        if session is not None:
            self._begin(self._release(session))

    def disconnected(self, connection: object) -> None:
        """End the sessions that began on a connection."""
        for member in self.sessions.of_connection(connection):
            self.sessions.ended_by_disconnect += 1
            self.close(member)

    async def _release(self, session: Session) -> None:
        group_id, member_id = session.key
        others_first = Breather()
        for key in list(session.partitions):
            await others_first()
            led = self._table.get(ShareKey(group_id, *key))
            if led is not None:
                try:
                    await led.release(member_id)
                except KafkaError as error:
                    _log.info("what %s had acquired of %s could not be released: %s", member_id, led, error)
        if not self.sessions.has_any(group_id):
            self._drop(led for led in self.all() if led.key.group_id == group_id and not led.is_busy)

    # --- changes of leadership and metadata

    def led(self, partition: Partition, leads: bool) -> None:
        """Handle a change of leadership: this broker now leads the partition, or no longer does."""
        if not leads:
            name = partition.topic, partition.partition_id
            self._drop(self._table[key] for key in list(self._by_replica.get(name, ())))

    def image_changed(self, old: MetadataImage, new: MetadataImage) -> None:
        """End everything when the cluster no longer has share groups."""
        if supports_share_groups(old) and not supports_share_groups(new):
            for member in self.sessions.all():
                self.sessions.remove(member)
            self._drop(self.all())

    # --- the table

    def _led(self, group_id: str, key: PartitionKey, topic: str) -> LedSharePartition:
        """Return a share partition. Raises KafkaError if this broker does not lead its partition."""
        share_key = ShareKey(group_id, *key)
        found = self._table.get(share_key)
        if found is not None:
            if found.leads:
                return found
            found.end()
        replica = self._replicas().leader(topic, key.partition)
        if replica.topic_id != key.topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        made = self._table[share_key] = LedSharePartition(share_key, replica, self._shell)
        self._by_replica.setdefault((topic, key.partition), {})[share_key] = None
        return made

    def _ended(self, led: LedSharePartition) -> None:
        if self._table.get(led.key) is led:
            del self._table[led.key]
            name = led.replica.topic, led.replica.partition_id
            keys = self._by_replica[name]
            del keys[led.key]
            if not keys:
                del self._by_replica[name]

    def _drop(self, some: Iterable[LedSharePartition]) -> None:
        for led in list(some):
            led.end()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
