"""A group of the consumer protocol (KIP-848) as its records have it, with the indexes that decisions need.

An immutable value: only replay makes a new one (`consumer_replay`). Everything but members, targets and expressions is
derived from those. A group has an epoch, which is bumped when subscriptions or subscribed topics change, and a target
assignment with the epoch it was computed for. Each member has its own epoch and partitions, which `current_assignment`
brings to the target step by step. While a group migrates, it may have members that speak the classic protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.groups import consumer_records
from barnabas.groups.assignors import Assignment
from barnabas.groups.image import MEMBER_BYTES, CheckPartition, CommittedOffset, GroupType
from barnabas.groups.regular_expressions import ResolvedRegularExpression
from barnabas.metadata.pmap import PMap
from barnabas.steps import Slices, at_once, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.replicated.decision import Records

CONSUMER_PROTOCOL: Final = "consumer"
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
NOT_OWNED: Final = -1
FIRST_EPOCH: Final = 1
NO_ASSIGNMENT_EPOCH: Final = -1
TOPIC_BYTES: Final = 128  # a topic of an assignment or of a subscription, about
PARTITION_BYTES: Final = 64  # a partition of an assignment, about
_OFFSET_COMMIT_VERSION: Final = 9  # the first version with member epochs

PartitionEpochs = Mapping[Uuid, Mapping[int, int]]
"""Partitions of a member by topic, each with the epoch in which it was assigned, in the order of Kafka's tables."""
NO_PARTITIONS: Final[PartitionEpochs] = {}


class State(StrEnum):
    """State of a consumer group, with the name that ListGroups returns."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """Progress of a member towards the target. Records contain these values."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to revoke partitions first
    UNRELEASED_PARTITIONS = 2  # other members still own partitions of its target
    UNKNOWN = 127  # written by a later version of Kafka


class ClassicMetadata(NamedTuple):
    """Additional fields of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = NO_PARTITIONS
    pending_revocation: PartitionEpochs = NO_PARTITIONS
    classic: ClassicMetadata | None = None

    @property
    def pattern(self) -> str | None:
        """The regular expression, or None."""
        return self.subscribed_topic_regex or None

    @property
    def held_bytes(self) -> int:
        """About the memory of the member."""
        topics = self.subscribed_topic_names
        classic = () if self.classic is None else self.classic.protocols
        return (
            MEMBER_BYTES
            + len(self.member_id)
            + len(self.client_id)
            + len(self.subscribed_topic_regex or "")
            + TOPIC_BYTES * len(topics)
            + sum(map(len, topics))
            + sum(len(name) + len(metadata) for name, metadata in classic)
            + assignment_bytes(self.assigned)
            + assignment_bytes(self.pending_revocation)
        )

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def moved_to(self, member_epoch: int) -> Member:
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Return the epoch in which a partition was assigned, or None if it is not."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def assignment_bytes(assignment: Mapping[Uuid, Collection[int]]) -> int:
    """Return about the memory of an assignment."""
    return TOPIC_BYTES * len(assignment) + PARTITION_BYTES * sum(map(len, assignment.values()))


def expression_bytes(pattern: str, resolved: ResolvedRegularExpression | None) -> int:
    """Return about the memory of a regular expression and the topics that it matched."""
    return 0 if resolved is None else len(pattern) + TOPIC_BYTES * len(resolved.topics)


class SubscriptionCount(NamedTuple):
    """Number of subscriptions to a topic: members that name it, and regular expressions that match it."""

    by_name: int = 0
    by_regex: int = 0


class SubscriptionCounts:
    """The subscription counts of a group while they are changed."""

    def __init__(self, counts: Mapping[str, SubscriptionCount]) -> None:
        self._counts = counts
        self._changed: dict[str, SubscriptionCount] = {}

    def names(self, topics: Iterable[str], by: int) -> Slices[None]:
        for some in stepwise(topics):
            yield
            for topic in some:
                count = self._count(topic)
                self._changed[topic] = SubscriptionCount(max(count.by_name + by, 0), count.by_regex)

    def regex(self, topics: Iterable[str], by: int) -> Slices[None]:
        for some in stepwise(topics):
            yield
            for topic in some:
                count = self._count(topic)
                self._changed[topic] = SubscriptionCount(count.by_name, max(count.by_regex + by, 0))

    def _count(self, topic: str) -> SubscriptionCount:
        return self._changed.get(topic) or self._counts.get(topic, SubscriptionCount())

    def finish(self, counts: PMap[str, SubscriptionCount]) -> Slices[PMap[str, SubscriptionCount]]:
        draft = counts.mutate()
        for some in stepwise(self._changed.items()):
            yield
            for topic, count in some:
                if any(count):
                    draft[topic] = count
                else:
                    draft.pop(topic, None)
        return draft.finish()


class ConsumerGroup(NamedTuple):
    """A consumer group. Implements `image.Group`."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: PMap[str, Member] = PMap()
    target_assignment: PMap[str, Assignment] = PMap()
    regular_expressions: PMap[str, ResolvedRegularExpression] = PMap()
    has_subscription_metadata: bool = False  # Kafka 4.0 wrote a record that is to be removed
    # Derived from the fields above.
    static_members: PMap[str, str] = PMap()  # by instance id
    subscriptions: PMap[str, SubscriptionCount] = PMap()  # by topic
    patterns: PMap[str, int] = PMap()  # number of members with the expression
    partition_epochs: PMap[tuple[Uuid, int], int] = PMap()  # member epoch of the owner

    # --- facts

    @property
    def type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def held_bytes(self) -> int:
        """About the memory of its members, assignments and regular expressions."""
        return (
            sum(member.held_bytes for member in self.members.values())
            + sum(map(assignment_bytes, self.target_assignment.values()))
            + sum(expression_bytes(pattern, resolved) for pattern, resolved in self.regular_expressions.items())
        )

    @property
    def pattern_count(self) -> int:
        return len(self.patterns)

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        is_stable = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return State.STABLE if is_stable else State.RECONCILING

    def member(self, member_id: str) -> Member:
        """Return a member. Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """Return the target assignment of a member or, with an instance id, of the member that has the instance now."""
        known_id = member_id if instance_id is None else self.static_members.get(instance_id)
        return {} if known_id is None else self.target_assignment.get(known_id, {})

    def partition_epoch(self, topic_id: Uuid, partition: int) -> int:
        """Return the member epoch of the owner of a partition, or NOT_OWNED."""
        return self.partition_epochs.get((topic_id, partition), NOT_OWNED)

    @property
    def classic_member_count(self) -> int:
        return sum(member.classic is not None for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the topics that a member subscribes to, by name and by its regular expression, if that is resolved."""
        resolved = None if member.pattern is None else self.regular_expressions.get(member.pattern)
        return member.subscribed_topic_names if resolved is None else member.subscribed_topic_names | resolved.topics

    # --- checks for offsets, lists and deletions

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        if generation < 0 and not self.members:
            return None  # an administrator, or a consumer that assigns its partitions itself
        if is_transactional and generation == -1 and member_id == "" and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and member.classic is None and version < _OFFSET_COMMIT_VERSION:
            message = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        if generation == member.member_epoch:
            return None
        if generation > member.member_epoch:
            name, current = _epoch_name(member), member.member_epoch
            raise _stale(member, f"Received {name} {generation} is newer than current member epoch {current}.")
        return _assigned_since(member, generation)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                member,
                f"The received {_epoch_name(member)} {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}.",
            )

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        return lambda offset: offset.commit_timestamp_ms

    def tombstones(self, group_id: str) -> Records:
        return consumer_records.group_tombstones(self)


def _assigned_since(member: Member, generation: int) -> CheckPartition:
    """Return a check that allows commits with an older epoch for partitions that were assigned by then."""

    def check(topic: str, topic_id: Uuid, partition: int) -> None:
        epoch = member.assignment_epoch(topic_id, partition)
        if epoch is None:
            raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if generation < epoch:
            raise _stale(
                member,
                f"Received {_epoch_name(member)} {generation} is older than assignment epoch {epoch} for partition "
                f"{topic}-{partition}.",
            )

    return check


def _stale(member: Member, message: str) -> KafkaError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, message)


def _epoch_name(member: Member) -> str:
    return "member epoch" if member.classic is None else "generation id"


# --- changes, for replay only


def with_member(group: ConsumerGroup, member: Member) -> ConsumerGroup:
    """Return the group with a new or changed member."""
    return at_once(with_member_in_slices(group, member))


def with_member_in_slices(group: ConsumerGroup, member: Member) -> Slices[ConsumerGroup]:
    """Return `with_member`: a member may have thousands of topics and partitions."""
    old = group.members.get(member.member_id)
    static_members = group.static_members
    if member.instance_id is not None:
        static_members = static_members.set(member.instance_id, member.member_id)
    return group._replace(
        members=group.members.set(member.member_id, member),
        static_members=static_members,
        subscriptions=(yield from subscriptions_with(group, old, member)),
        patterns=patterns_with(group, old, member),
        partition_epochs=(yield from _epochs_with(group.partition_epochs, old, member)),
    )


def without_member(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    return at_once(without_member_in_slices(group, member_id))


def without_member_in_slices(group: ConsumerGroup, member_id: str) -> Slices[ConsumerGroup]:
    """Return `without_member`."""
    old = group.members[member_id]
    static_members = group.static_members
    if old.instance_id is not None and static_members.get(old.instance_id) == member_id:
        static_members = static_members.delete(old.instance_id)
    return group._replace(
        members=group.members.delete(member_id),
        static_members=static_members,
        subscriptions=(yield from subscriptions_with(group, old, None)),
        patterns=patterns_with(group, old, None),
        partition_epochs=(yield from _epochs_with(group.partition_epochs, old, None)),
    )


def with_regular_expression(
    group: ConsumerGroup, pattern: str, resolved: ResolvedRegularExpression | None
) -> ConsumerGroup:
    """Return the group after an expression was resolved, or without it if no member has it any more."""
    return at_once(with_regular_expression_in_slices(group, pattern, resolved))


def with_regular_expression_in_slices(
    group: ConsumerGroup, pattern: str, resolved: ResolvedRegularExpression | None
) -> Slices[ConsumerGroup]:
    """Return `with_regular_expression`."""
    old = group.regular_expressions.get(pattern)
    counts = SubscriptionCounts(group.subscriptions)
    expressions = group.regular_expressions
    if old is not None:
        yield from counts.regex(old.topics, -1)
        expressions = expressions.delete(pattern)
    if resolved is not None:
        yield from counts.regex(resolved.topics, 1)
        expressions = expressions.set(pattern, resolved)
    subscriptions = yield from counts.finish(group.subscriptions)
    return group._replace(regular_expressions=expressions, subscriptions=subscriptions)


def subscriptions_with(
    group: ConsumerGroup, old: Member | None, new: Member | None
) -> Slices[PMap[str, SubscriptionCount]]:
    """Return the subscriptions by name after the change of one member."""
    before = frozenset() if old is None else old.subscribed_topic_names
    after = frozenset() if new is None else new.subscribed_topic_names
    if before == after:
        return group.subscriptions
    counts = SubscriptionCounts(group.subscriptions)
    yield from counts.names(before, -1)
    yield from counts.names(after, 1)
    return (yield from counts.finish(group.subscriptions))


def patterns_with(group: ConsumerGroup, old: Member | None, new: Member | None) -> PMap[str, int]:
    """Return the regular expressions of members after the change of one member."""
    before, after = None if old is None else old.pattern, None if new is None else new.pattern
    patterns = group.patterns
    if before != after:
        if before is not None:
            count = patterns.get(before, 0)
            if count > 1:
                patterns = patterns.set(before, count - 1)
            elif count:
                patterns = patterns.delete(before)
        if after is not None:
            patterns = patterns.set(after, patterns.get(after, 0) + 1)
    return patterns


def _epochs_with(
    epochs: PMap[tuple[Uuid, int], int], old: Member | None, new: Member | None
) -> Slices[PMap[tuple[Uuid, int], int]]:
    if old is not None and new is not None and _has_same(old, new):
        return epochs
    draft = epochs.mutate()
    if old is not None:
        for some in stepwise(_owned(old)):
            yield
            for key in some:
                if draft.get(key) == old.member_epoch:  # otherwise another member owns it already
                    del draft[key]
    if new is not None:
        for some in stepwise(_owned(new)):
            yield
            for key in some:
                draft[key] = max(new.member_epoch, draft.get(key, new.member_epoch))
    return draft.finish()


def _has_same(old: Member, new: Member) -> bool:
    return (
        old.member_epoch == new.member_epoch
        and old.assigned == new.assigned
        and old.pending_revocation == new.pending_revocation
    )


def _owned(member: Member) -> Iterable[tuple[Uuid, int]]:
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            for partition in epochs:
                yield topic_id, partition
