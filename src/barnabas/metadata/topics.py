"""Topics and their partitions, with the few indexes that decisions need.

The one rule: a partition changes only by a record, which increments its partition epoch and, if it sets the leader,
also its leader epoch. Everything but `by_id` is derived from it. Leader election and replica placement are not decided
here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.pmap import PMap
from barnabas.metadata.versions import MetadataVersion
from barnabas.steps import Slices, stepwise
from barnabas.wire.primitives import ZERO_UUID, Uuid
from barnabas.wire.records.metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft

T = TypeVar("T")

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
REASSIGNING: Final = -(1 << 32)  # not a leader of any record: ids of brokers have 32 bits
VISITS_PER_STEP: Final = 500
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_RECOVERY_CHANGE: Final = -1
MAX_INT32: Final = 2**31 - 1

MIGRATING_DIR: Final = ZERO_UUID
"""The directory of the replica was never reported: the assignment is older than directory ids."""
UNASSIGNED_DIR: Final = Uuid((1).to_bytes(16))
LOST_DIR: Final = Uuid((2).to_bytes(16))


class Partition(NamedTuple):
    """The state of a partition. `directories` has the same order as `replicas`."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def directory(self, replica: int) -> Uuid | None:
        """Return the directory id of this broker's replica, or None if it has none."""
        return self.directories[self.replicas.index(replica)] if replica in self.replicas else None


class Topic(NamedTuple):
    """A topic. The id of a partition is its index."""

    name: str
    topic_id: Uuid
    partitions: tuple[Partition, ...]


class TopicPartition(NamedTuple):
    topic: Topic
    partition_id: int
    partition: Partition


class Topics(NamedTuple):
    by_id: PMap[Uuid, Topic] = PMap()
    ids: PMap[str, Uuid] = PMap()
    names: tuple[str, ...] = ()
    """Sorted, so that listing one page of topics does not visit the others."""
    counts: PMap[int, int] = PMap()
    """Number of partitions by leader. NO_LEADER counts those without one, REASSIGNING those being reassigned."""
    unified: PMap[str, tuple[str, ...]] = PMap()
    """Names with a dot or an underscore, grouped by the name they would have in metrics."""

    def get(self, name: str) -> Topic | None:
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: Uuid, index: int) -> Partition | None:
        topic = self.by_id.get(topic_id)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def in_sync_on(self, broker_id: int) -> Slices[list[TopicPartition]]:
        """Return the partitions with an in-sync replica on this broker."""
        return self.select(lambda some: [index for index, each in enumerate(some) if broker_id in each.isr])

    def on_broker(self, broker_id: int) -> Slices[list[TopicPartition]]:
        """Return the partitions with a replica on this broker."""
        return self.select(lambda some: [index for index, each in enumerate(some) if broker_id in each.replicas])

    def led_by(self, broker_id: int) -> Slices[list[TopicPartition]]:
        if broker_id not in self.counts:
            return []
        return (
            yield from self.select(lambda some: [index for index, each in enumerate(some) if each.leader == broker_id])
        )

    def leaderless(self) -> Slices[list[TopicPartition]]:
        return self.led_by(NO_LEADER)

    def reassigning(self) -> Slices[list[TopicPartition]]:
        if REASSIGNING not in self.counts:
            return []
        return (yield from self.select(lambda some: [index for index, each in enumerate(some) if each.is_reassigning]))

    def colliding(self, name: str) -> tuple[str, ...]:
        """Return other topics that have the same name in metrics."""
        return tuple(other for other in self.unified.get(unify(name), ()) if other != name)

    def select(self, wanted: Callable[[Sequence[Partition]], list[int]]) -> Slices[list[TopicPartition]]:
        """Return the matching partitions, ordered by topic name. Visits every partition, with pauses.

        `wanted` returns the positions of those that match: a call for each partition would take most of the time.
        """
        found: list[TopicPartition] = []
        visited = 0
        for name in self.names:
            topic = self.by_id[self.ids[name]]
            for first in range(0, len(topic.partitions), VISITS_PER_STEP):
                some = topic.partitions[first : first + VISITS_PER_STEP]
                found += [TopicPartition(topic, first + index, some[index]) for index in wanted(some)]
                visited += len(some)
                if visited >= VISITS_PER_STEP:
                    visited = 0
                    yield
        return found


def touched_topics(records: Sequence[Any]) -> set[Uuid] | None:
    """Return the ids of the topics in the records. Without records any topic may have changed: None."""
    return {record.topic_id for record in records if hasattr(record, "topic_id")} if records else None


def unify(name: str) -> str:
    return name.replace(".", "_")


class TopicDraft:
    """A topic being changed. Partitions may be added in any order, but must have no gap at the end."""

    __slots__ = ("early", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid, partitions: Iterable[Partition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = list(partitions)
        self.early: dict[int, Partition] | None = None

    def get(self, partition_id: int) -> Partition | None:
        if 0 <= partition_id < len(self.partitions):
            return self.partitions[partition_id]
        return self.early.get(partition_id) if self.early else None

    def put(self, partition_id: int, partition: Partition) -> None:
        partitions = self.partitions
        if partition_id == len(partitions):
            partitions.append(partition)
            if self.early:
                following = self.early.pop(len(partitions), None)
                if following is not None:
                    self.put(len(partitions), following)
        elif 0 <= partition_id < len(partitions):
            partitions[partition_id] = partition
        elif partition_id >= 0:
            self.early = {**(self.early or {}), partition_id: partition}
        else:
            raise ReplayError(f"a partition of topic {self.name} has id {partition_id}")

    def finish(self) -> Topic:
        if self.early:
            raise ReplayError(f"topic {self.name} has partition {min(self.early)} but not {len(self.partitions)}")
        return Topic(self.name, self.topic_id, tuple(self.partitions))


class TopicsDraft:
    """Topics being changed. Changed topics are drafts, removed ones are None, and all others are those of the base."""

    __slots__ = ("_base", "_changed_names", "_counts", "_ids", "_interned", "_partitions", "_topics")

    def __init__(self, base: Topics) -> None:
        self._base = base
        self._ids = base.ids.mutate()
        self._changed_names: set[str] = set()
        self._topics: dict[Uuid, TopicDraft | None] = {}
        self._counts: dict[int, int] = defaultdict(int)
        self._interned: dict[Any, Any] = {}
        self._partitions: dict[tuple[Any, ...], Partition] = {}

    @property
    def touched(self) -> Iterable[Uuid]:
        return self._topics.keys()

    def intern(self, values: Sequence[T]) -> tuple[T, ...]:
        """Return one shared object for equal tuples: a cluster has many partitions but few placements."""
        if not values:
            return ()
        found = tuple(values)
        interned: tuple[T, ...] = self._interned.setdefault(found, found)
        return interned

    def intern_partition(self, fields: tuple[Any, ...]) -> Partition:
        """Return one shared object for equal partitions: new ones differ only in their placement."""
        partition = self._partitions.get(fields)
        if partition is None:
            given, intern = Partition(*fields), self.intern
            replicas = intern(given.replicas)
            partition = self._partitions[fields] = Partition(
                replicas,
                _directories(intern(given.directories), replicas),
                intern(given.isr),
                intern(given.removing_replicas),
                intern(given.adding_replicas),
                given.leader,
                _recovery_state(given.leader_recovery_state),
                given.leader_epoch,
                given.partition_epoch,
                intern(given.elr),
                intern(given.last_known_elr),
            )
        return partition

    def find(self, topic_id: Uuid) -> TopicDraft:
        """Return the draft of a topic. The first call copies its list of partitions."""
        draft = self._topics.get(topic_id)
        if draft is None:
            base = None if topic_id in self._topics else self._base.by_id.get(topic_id)
            if base is None:
                raise ReplayError(f"there is no topic with id {topic_id}")
            draft = self._topics[topic_id] = TopicDraft(base.name, topic_id, base.partitions)
        return draft

    def find_by_name(self, name: str) -> TopicDraft:
        topic_id = self._ids.get(name)
        if topic_id is None:
            raise ReplayError(f"there is no topic {name}")
        return self.find(topic_id)

    def find_all(self) -> list[TopicDraft]:
        for topic_id in self._base.by_id:
            if topic_id not in self._topics:
                self.find(topic_id)
        return [draft for draft in self._topics.values() if draft is not None]

    def put(self, topic: TopicDraft, partition_id: int, partition: Partition) -> None:
        if partition_id == len(topic.partitions) and topic.early is None:
            topic.partitions.append(partition)  # the common case: new partitions arrive in order
        else:
            old = topic.get(partition_id)
            if old is not None:
                self._count(old, -1)
            topic.put(partition_id, partition)
        self._count(partition, 1)

    def _count(self, partition: Partition, step: int) -> None:
        counts = self._counts
        counts[partition.leader] += step
        if partition.removing_replicas or partition.adding_replicas:
            counts[REASSIGNING] += step

    def create(self, name: str, topic_id: Uuid) -> None:
        """Create a topic. If it already exists with this id, it starts again without partitions."""
        known, owner = self._ids.get(name), self._name(topic_id)
        if known != (topic_id if owner == name else None) or owner not in (None, name):
            raise ReplayError(f"topic {name} has id {known}, and id {topic_id} belongs to topic {owner}")
        if owner is not None:
            self.remove(topic_id)
        self._ids[name] = topic_id
        self._changed_names.add(name)
        self._topics[topic_id] = TopicDraft(name, topic_id, ())

    def remove(self, topic_id: Uuid) -> str:
        """Remove a topic and return its name."""
        topic = self.find(topic_id)
        for partition in (*topic.partitions, *(topic.early or {}).values()):
            self._count(partition, -1)
        self._topics[topic_id] = None
        del self._ids[topic.name]
        self._changed_names.add(topic.name)
        return topic.name

    def _name(self, topic_id: Uuid) -> str | None:
        owner = self._topics[topic_id] if topic_id in self._topics else self._base.by_id.get(topic_id)
        return None if owner is None else owner.name

    def finish(self) -> Slices[Topics]:
        base = self._base
        by_id, ids = base.by_id.mutate(), self._ids.finish()
        for some in stepwise(self._topics.items()):
            for topic_id, draft in some:
                if draft is None:
                    by_id.pop(topic_id, None)
                else:
                    by_id[topic_id] = draft.finish()
            yield
        added = sorted(name for name in self._changed_names if name in ids and name not in base.ids)
        removed = sorted(name for name in self._changed_names if name not in ids and name in base.ids)
        return Topics(
            by_id.finish(),
            ids,
            _renamed(base.names, added, removed),
            _recounted(base.counts, self._counts),
            _reunified(base.unified, added, removed),
        )


def _renamed(names: tuple[str, ...], added: list[str], removed: list[str]) -> tuple[str, ...]:
    if not added and not removed:
        return names
    changed = list(names)
    if len(added) + len(removed) > 16:
        gone = set(removed)
        changed = [name for name in changed if name not in gone] if gone else changed
        changed += added
        changed.sort()
        return tuple(changed)
    for name in removed:
        del changed[bisect_left(changed, name)]
    for name in added:
        changed.insert(bisect_left(changed, name), name)
    return tuple(changed)


def _recounted(base: PMap[int, int], deltas: dict[int, int]) -> PMap[int, int]:
    for key, delta in deltas.items():
        if delta:
            count = base.get(key, 0) + delta
            base = base.set(key, count) if count else base.delete(key)
    return base


def _reunified(base: PMap[str, tuple[str, ...]], added: list[str], removed: list[str]) -> PMap[str, tuple[str, ...]]:
    if not added and not removed:
        return base
    unified = base.mutate()
    for name in filter(_can_collide, removed):
        rest = tuple(other for other in unified[unify(name)] if other != name)
        if rest:
            unified[unify(name)] = rest
        else:
            del unified[unify(name)]
    for name in filter(_can_collide, added):
        unified[unify(name)] = tuple(sorted((*unified.get(unify(name), ()), name)))
    return unified.finish()


def _can_collide(name: str) -> bool:
    return "." in name or "_" in name


def replay_topic(draft: Draft, record: TopicRecord) -> None:
    draft.topics.create(record.name, record.topic_id)


def replay_remove_topic(draft: Draft, record: RemoveTopicRecord) -> None:
    """Remove a topic and its configs."""
    name = draft.topics.remove(record.topic_id)
    draft.configs.remove(ConfigResource(ConfigResourceType.TOPIC, name))


def replay_partition(draft: Draft, record: PartitionRecord) -> None:
    topics = draft.topics
    topic = topics.find(record.topic_id)
    fields = (
        tuple(record.replicas),
        tuple(record.directories),
        tuple(record.isr),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )
    topics.put(topic, record.partition_id, topics.intern_partition(fields))


def replay_partition_change(draft: Draft, record: PartitionChangeRecord) -> None:
    """Change a partition. Null fields stay unchanged; a leader, even the same one, starts a new leader epoch."""
    topics = draft.topics
    topic = topics.find(record.topic_id)
    old = topic.get(record.partition_id)
    if old is None:
        raise ReplayError(f"topic {topic.name} has no partition {record.partition_id}")
    intern = topics.intern

    def changed(values: list[int] | None, kept: tuple[int, ...]) -> tuple[int, ...]:
        return kept if values is None else intern(values)

    replicas, directories = changed(record.replicas, old.replicas), record.directories
    leads_anew = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    partition = Partition(
        replicas,
        _directories(old.directories if directories is None else intern(directories), replicas),
        changed(record.isr, old.isr),
        changed(record.removing_replicas, old.removing_replicas),
        changed(record.adding_replicas, old.adding_replicas),
        record.leader if leads_anew else old.leader,
        old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else _recovery_state(recovery),
        _next_epoch(old.leader_epoch) if leads_anew else old.leader_epoch,
        _next_epoch(old.partition_epoch),
        changed(record.eligible_leader_replicas, old.elr),
        changed(record.last_known_elr, old.last_known_elr),
    )
    topics.put(topic, record.partition_id, partition)


def replay_clear_elr(draft: Draft, record: ClearElrRecord) -> None:
    """Clear the ELR of a topic, or of every topic if there is no name. Partitions without one keep their epoch."""
    topics = draft.topics
    if record.topic_name:
        cleared = [topics.find_by_name(record.topic_name)]
    else:
        cleared = topics.find_all()
    for topic in cleared:
        for index in [*range(len(topic.partitions)), *(topic.early or ())]:
            old = topic.get(index)
            if old is not None and (old.elr or old.last_known_elr):
                partition_epoch = _next_epoch(old.partition_epoch)
                topics.put(topic, index, old._replace(elr=(), last_known_elr=(), partition_epoch=partition_epoch))


def _next_epoch(epoch: int) -> int:
    """Return the next epoch. After the largest int32 comes the smallest one, as in Kafka."""
    return epoch + 1 if epoch < MAX_INT32 else -MAX_INT32 - 1


def _directories(directories: tuple[Uuid, ...], replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
    """Return the directories of the replicas: MIGRATING_DIR for each if there are none, or only that value."""
    if directories.count(MIGRATING_DIR) == len(directories):
        return (MIGRATING_DIR,) * len(replicas)
    if len(directories) != len(replicas):
        raise ReplayError(f"there are {len(directories)} directories for {len(replicas)} replicas")
    return directories


def _recovery_state(value: int) -> int:
    if value not in (RECOVERED, RECOVERING):
        raise ReplayError(f"{value} is not a leader recovery state")
    return value


def to_records(
    topics: Topics, version: MetadataVersion, lose: Callable[[str], None]
) -> Iterator[tuple[TopicRecord | PartitionRecord, int]]:
    for name in topics.names:
        topic_id = topics.ids[name]
        yield TopicRecord(name=name, topic_id=topic_id), 0
        for index, partition in enumerate(topics.by_id[topic_id].partitions):
            record = partition_record(topic_id, index, partition)
            if not version.is_directory_assignment_supported:
                if any(directory != MIGRATING_DIR for directory in partition.directories):
                    lose(f"the directories of {name}-{index}")
                record.directories = []
            if (partition.elr or partition.last_known_elr) and not version.is_elr_supported:
                lose(f"the eligible leader replicas of {name}-{index}")
                record.eligible_leader_replicas = record.last_known_elr = None
            yield record, version.partition_record_version


def partition_record(topic_id: Uuid, index: int, partition: Partition) -> PartitionRecord:
    """Return the record that creates exactly this partition."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
