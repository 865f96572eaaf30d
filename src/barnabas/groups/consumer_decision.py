"""The common parts of decisions about consumer groups: their input, their output, and the steps that they consist of.

Pure. The input is a group, a member before and after a request, the metadata of the cluster, the settings and the time.
Timers are requested here and kept by the coordinator. The steps have Kafka's order, which is the order of the records:
the member, its regular expression, the group epoch, the target assignment, and the current assignment of the member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from barnabas.groups import regular_expressions, target_assignment
from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer_group import (
    ConsumerGroup,
    Member,
    MemberState,
    SubscriptionCount,
    SubscriptionCounts,
    patterns_with,
    subscriptions_with,
)
from barnabas.groups.consumer_records import (
    Record,
    current_record,
    current_record_in_slices,
    epoch_record,
    member_record,
    member_tombstones,
    regular_expression_tombstone,
    subscription_metadata_tombstone,
    target_record,
)
from barnabas.groups.consumer_settings import ConsumerSettings
from barnabas.groups.current_assignment import Owned, reconcile_in_slices
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, result_of
from barnabas.wire import Uuid

if TYPE_CHECKING:
    from barnabas.groups.classic.group import ClassicGroup

R = TypeVar("R")

MIN_REGEX_REFRESH_INTERVAL_MS: Final = 10_000


class ConsumerSituation(NamedTuple):
    """Input of a decision beside the group and the request."""

    metadata: MetadataImage
    settings: ConsumerSettings
    now_ms: int
    metadata_hash: Callable[[Iterable[str]], int | Slices[int]]  # returns the hash of topics, given by name
    is_metadata_checked: bool = False  # the hash of the group was already compared with this metadata
    is_resolving: bool = False  # its regular expressions are being resolved
    new_topics_version: int = -1  # offset of the metadata in which topics were last created


class Asker(NamedTuple):
    """The client that sent a request."""

    client_id: str
    client_host: str


class Timer(Enum):
    """Timers of a member, which is removed when one of them expires, and of a group."""

    SESSION = "session"
    REBALANCE = "rebalance"  # to revoke partitions in an epoch
    JOIN = "join"  # for a classic member to join again
    SYNC = "sync"  # for a classic member to send SyncGroup
    INITIAL_REBALANCE = "initial rebalance"  # of a streams group, for more members to join


class TimerChange(NamedTuple):
    """Start or restart a timer of a member. Without a delay the timer is cancelled."""

    member_id: str
    timer: Timer
    delay_ms: int | None = None
    epoch: int = 0
    if_absent: bool = False


class Outcome(NamedTuple, Generic[R]):
    """The response to a request, and the tasks of the coordinator beside writing the records."""

    response: R
    timers: Sequence[TimerChange] = ()
    resolve: frozenset[str] = frozenset()  # regular expressions to resolve for the client that sent the request
    checked_epoch: int | None = None  # group epoch in which the hash was compared with the metadata
    is_upgrade: bool = False  # the group was a classic group
    downgraded: ClassicGroup | None = None  # the group is a classic group now
    rebalance: bool = False  # the downgraded group has to rebalance


Decided = Result[Outcome[R]]


class RegexUpdate(IntEnum):
    """Effect of a heartbeat on the regular expression of a member."""

    NO_CHANGE = 0
    UPDATED = 1
    RESOLVED = 2  # updated, and the topics that it matches are known


class Draft:
    """A decision about one member of a group while it is built."""

    def __init__(self, group: ConsumerGroup, situation: ConsumerSituation, records: Iterable[Record] = ()) -> None:
        self.group = group
        self.situation = situation
        self.records = list(records)
        self.timers: list[TimerChange] = []
        self.resolve: frozenset[str] = frozenset()
        self.checked_epoch: int | None = None
        self.group_epoch = group.group_epoch
        self._is_homogeneous: bool | None = None

    def decided(self, response: R, *, is_upgrade: bool = False) -> Decided[R]:
        return Result(self.records, Outcome(response, self.timers, self.resolve, self.checked_epoch, is_upgrade))

    # --- the member

    def replace(self, old: Member, new: Member) -> None:
        """Replace a static member that joins with a new member id. It keeps the assignment of its instance."""
        group_id = self.group.group_id
        self.records += member_tombstones(group_id, old.member_id)
        self.records.append(member_record(group_id, new))
        self.records.append(target_record(group_id, new.member_id, self.group.target(old.member_id)))
        self.records.append(current_record(group_id, new))

    def update_member(self, member: Member, updated: Member) -> bool:
        """Write the member if it changed. Returns whether the topics that it names changed."""
        if updated == member:
            return False
        self.records.append(member_record(self.group.group_id, updated))
        return updated.subscribed_topic_names != member.subscribed_topic_names

    # --- the regular expression of the member

    def update_regex(self, member: Member, updated: Member) -> RegexUpdate:
        """Update the regular expression, and have it resolved if that is due. Raises INVALID_REGULAR_EXPRESSION."""
        group, now_ms = self.group, self.situation.now_ms
        update, must_resolve = self._change_regex(member, updated)
        if (not must_resolve and not group.patterns) or self.situation.is_resolving:
            return update
        resolved = list(group.regular_expressions.values())
        last_ms = max((expression.timestamp_ms for expression in resolved), default=None)
        if last_ms is not None and now_ms <= last_ms + MIN_REGEX_REFRESH_INTERVAL_MS:
            return update
        patterns = patterns_with(group, member, updated)
        last_version = max((expression.version for expression in resolved), default=0)
        must_resolve |= len(patterns) != len(resolved)
        must_resolve |= last_version < self.situation.new_topics_version
        must_resolve |= last_ms is None or now_ms > last_ms + self.situation.settings.regex_refresh_interval_ms
        if must_resolve:
            self.resolve = frozenset(patterns)
        return update

    def _change_regex(self, member: Member, updated: Member) -> tuple[RegexUpdate, bool]:
        """Return the kind of change, and whether the group has a new expression to resolve."""
        group, old, new = self.group, member.subscribed_topic_regex, updated.subscribed_topic_regex
        if old == new:
            return RegexUpdate.NO_CHANGE, False
        if old and group.patterns.get(old, 0) == 1:
            self.records.append(regular_expression_tombstone(group.group_id, old))
        if new and new not in group.patterns:
            regular_expressions.check(new)
            return RegexUpdate.UPDATED, True
        is_resolved = new in group.regular_expressions if new else bool(old)
        return RegexUpdate.RESOLVED if is_resolved else RegexUpdate.UPDATED, False

    # --- the group epoch

    def update_epoch(self, member: Member, updated: Member, *, bump: bool) -> Slices[None]:
        """Bump the group epoch if `bump` is set or the subscribed topics changed."""
        if not bump and self.situation.is_metadata_checked:
            return
        group = self.group
        subscriptions = yield from self._subscriptions(member, updated)
        metadata_hash = yield from result_of(self.situation.metadata_hash(subscriptions))
        member_count = len(group.members)
        if updated.member_id not in group.members and updated.instance_id not in group.static_members:
            member_count += 1
        self._is_homogeneous = is_homogeneous(patterns_with(group, member, updated), subscriptions, member_count)
        if bump or metadata_hash != group.metadata_hash:
            self.group_epoch += 1
            self.records.append(epoch_record(group.group_id, self.group_epoch, metadata_hash))
        self.checked_epoch = self.group_epoch
        if group.has_subscription_metadata:
            self.records.append(subscription_metadata_tombstone(group.group_id))

    def _subscriptions(self, member: Member, updated: Member) -> Slices[PMap[str, SubscriptionCount]]:
        group, pattern = self.group, member.pattern
        subscriptions = yield from subscriptions_with(group, member, updated)
        if pattern is not None and pattern != updated.pattern and group.patterns.get(pattern) == 1:
            resolved = group.regular_expressions.get(pattern)
            if resolved is not None:
                counts = SubscriptionCounts(subscriptions)
                yield from counts.regex(resolved.topics, -1)
                subscriptions = yield from counts.finish(subscriptions)
        return subscriptions

    # --- the target assignment

    def update_target(self, member: Member, updated: Member) -> Slices[tuple[int, Assignment]]:
        """Compute a new target if one is due.

        Returns the epoch of the target and the assignment of the member in it.
        """
        group, now_ms = self.group, self.situation.now_ms
        if group.assignment_epoch >= self.group_epoch or not self._may_assign():
            return group.assignment_epoch, group.target(updated.member_id, updated.instance_id)
        homogeneous = self._is_homogeneous
        if homogeneous is None:
            homogeneous = is_homogeneous(group.patterns, group.subscriptions, len(group.members))
        wanted = target_assignment.preferred_assignor(group, member, updated)
        available = self.situation.settings.assignors
        target = yield from target_assignment.assign(
            group,
            updated,
            self.group_epoch,
            wanted if wanted in available and wanted is not None else available[0],
            self.situation.metadata.topics,
            now_ms,
            is_homogeneous=homogeneous,
        )
        self.records += target.records
        return self.group_epoch, target.assignments.get(updated.member_id, {})

    def _may_assign(self) -> bool:
        """Whether the minimum interval since the last assignment is over."""
        last_ms, interval_ms = self.group.assignment_timestamp_ms, self.situation.settings.assignment_interval_ms
        return not last_ms or not interval_ms or self.situation.now_ms >= last_ms + interval_ms

    # --- the current assignment of the member

    def reconcile(
        self, member: Member, target_epoch: int, target: Assignment, owned: Owned | None, *, subscription_changed: bool
    ) -> Slices[Member]:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        updated = yield from reconcile_in_slices(
            self.group,
            member,
            target_epoch,
            target,
            self._topic_ids(member),
            owned,
            subscription_changed=subscription_changed,
        )
        if updated != member:
            self.records.append((yield from current_record_in_slices(self.group.group_id, updated)))
            if updated.classic is None:
                # A classic member has the timers JOIN and SYNC instead.
                delay_ms = updated.rebalance_timeout_ms if updated.state is MemberState.UNREVOKED_PARTITIONS else None
                self.timers.append(TimerChange(updated.member_id, Timer.REBALANCE, delay_ms, updated.member_epoch))
        return updated

    def _topic_ids(self, member: Member) -> set[Uuid]:
        ids = self.situation.metadata.topics.ids
        return {ids[name] for name in self.group.topics_of(member) if name in ids}


def is_homogeneous(patterns: PMap[str, int], subscriptions: PMap[str, SubscriptionCount], member_count: int) -> bool:
    """Whether all members have the same subscription: the same names, or one regular expression."""
    if not patterns:
        return all(count.by_name == member_count for count in subscriptions.values())
    if member_count not in patterns.values():
        return False
    return all(count == (0, 1) for count in subscriptions.values())
