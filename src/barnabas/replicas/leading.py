"""The leader's view of the other replicas of one partition: how far each one is, and which are in sync. Pure.

Its one rule: the high watermark waits for every replica that may be in the ISR. A change of the ISR is proposed to the
controller (AlterPartition). Until it decides, the ISR that counts for `min.insync.replicas` is the old one, and the one
that the high watermark waits for has the replicas of both. Only one proposal of a partition is under way at a time.

A follower is caught up while its last fetch, or the one before, reached the end that the leader's log had at that time.
It joins the ISR when it reaches the high watermark and the start of the leader's epoch, and the controller would accept
it. It leaves when it was not caught up for `replica.lag.time.max.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.metadata.brokers import Broker
from barnabas.metadata.topics import Partition
from barnabas.wire import ErrorCode, KafkaError

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1

BrokerOf = Callable[[int], Broker | None]
"""Returns a registered broker, or None."""


class Proposal(NamedTuple):
    """An ISR with the epochs of its brokers, and the state of the partition that it changes."""

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int

    @property
    def replicas(self) -> tuple[int, ...]:
        return tuple(replica for replica, _ in self.isr)


class Decided(NamedTuple):
    """The state of a partition that the controller returned for a proposal."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class Follower:
    """What the leader knows about one follower from its fetches."""

    __slots__ = (
        "broker_epoch",
        "last_caught_up_ms",
        "last_fetch_ms",
        "leader_end_at_last_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: int) -> None:
        self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
        self.leader_end_at_last_fetch = UNKNOWN_OFFSET
        self.last_fetch_ms = 0
        self.last_caught_up_ms = last_caught_up_ms
        self.broker_epoch: int | None = None  # None before its first fetch

    def fetched(self, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_lag_ms


class Leading:
    """The followers of a partition that this broker leads, and its ISR as far as this broker knows it."""

    __slots__ = (
        "_broker_of",
        "_max_lag_ms",
        "_node_id",
        "followers",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "proposed",
        "replica_count",
    )

    def __init__(self, node_id: int, state: Partition, broker_of: BrokerOf, max_lag_ms: int, now_ms: int) -> None:
        self._node_id = node_id
        self._broker_of = broker_of
        self._max_lag_ms = max_lag_ms
        self.followers: dict[int, Follower] = {}
        self.proposed: Proposal | None = None
        self.isr: tuple[int, ...] = ()
        self.leader_epoch = self.partition_epoch = -1
        self.replica_count = 0
        self.decided(state, now_ms)

    def decided(self, state: Partition, now_ms: int) -> None:
        """Follow the state of the partition in the metadata, unless the controller has already returned a newer one."""
        if state.leader_epoch == self.leader_epoch and state.partition_epoch <= self.partition_epoch:
            return
        known = self.followers
        self.followers = {
            replica: known.get(replica) or Follower(now_ms if replica in state.isr else 0)
            for replica in state.replicas
            if replica != self._node_id
        }
        self.replica_count = len(state.replicas)
        self.isr, self.leader_epoch, self.partition_epoch = state.isr, state.leader_epoch, state.partition_epoch
        self.proposed = None

    def answered(self, proposal: Proposal, answer: Decided | ErrorCode) -> bool:
        """Follow the controller's answer to a proposal. Return whether the same proposal is to be sent again."""
        if self.proposed is not proposal:
            return False  # the metadata was faster
        if isinstance(answer, ErrorCode):
            if answer in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED):
                self.proposed = None
                return False
            # After these, the metadata will have a newer state.
            return answer not in _OUTDATED
        if answer.leader_epoch == self.leader_epoch and answer.partition_epoch >= self.partition_epoch:
            self.isr, self.partition_epoch = answer.isr, answer.partition_epoch
            self.proposed = None
        return False

    # --- progress of followers

    def fetched(
        self, replica_id: int, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_ms: int
    ) -> None:
        """Record that a follower fetches from `offset`, and so has everything before it. Raises NOT_LEADER_OR_FOLLOWER."""
        follower = self.followers.get(replica_id)
        if follower is None:
            return
        broker = self._broker_of(replica_id)
        if broker_epoch != UNKNOWN_EPOCH and broker is not None and broker.epoch > broker_epoch:
            text = f"broker {replica_id} has epoch {broker.epoch}, and this fetch is of its epoch {broker_epoch}"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        follower.fetched(offset, log_start_offset, broker_epoch, leader_end, now_ms)

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas that are in the ISR now or may be in it once the controller has decided."""
        if self.proposed is None:
            return self.isr
        return tuple(dict.fromkeys((*self.isr, *self.proposed.replicas)))

    def high_watermark(self, leader_end: int, now_ms: int) -> int:
        """Return the end of what all replicas have that are, or may soon be, in sync."""
        end = leader_end
        maximal = self.maximal_isr
        for replica, follower in self.followers.items():
            if follower.log_end_offset < end and (
                replica in maximal
                or (
                    follower.is_caught_up(leader_end, now_ms, self._max_lag_ms) and self._is_eligible(replica, follower)
                )
            ):
                end = follower.log_end_offset
        return end

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest log start offset among the replicas on live brokers."""
        return min([log_start_offset, *(each.log_start_offset for _, each in self._on_live_brokers())])

    def nearest(self, rack_id: str, listener_name: str, offset: int) -> int | None:
        """Return the follower in a rack that has most of what a consumer wants from an offset on, or None."""
        near = [
            (follower.log_end_offset, follower.last_caught_up_ms, -replica)
            for replica, follower in self.readable_replicas(offset)
            if (broker := self._broker_of(replica)) is not None
            and broker.rack == rack_id
            and listener_name in broker.listeners
        ]
        return -max(near)[2] if near else None

    def readable_replicas(self, offset: int) -> Iterator[tuple[int, Follower]]:
        """Yield the followers in the ISR from which a consumer can read at an offset."""
        for replica, follower in self._on_live_brokers():
            if replica in self.isr and follower.log_start_offset <= offset <= follower.log_end_offset:
                yield replica, follower

    def _on_live_brokers(self) -> Iterator[tuple[int, Follower]]:
        for replica, follower in self.followers.items():
            broker = self._broker_of(replica)
            if broker is not None and not broker.fenced:
                yield replica, follower

    # --- changes of the ISR

    def expand(self, replica_id: int, high_watermark: int, epoch_start: int, own_epoch: int) -> Proposal | None:
        """Return the proposal to add a follower to the ISR, if it is ready for that."""
        follower = self.followers.get(replica_id)
        if (
            self.proposed is not None
            or follower is None
            or replica_id in self.isr
            or follower.log_end_offset < max(high_watermark, epoch_start)
            or not self._is_eligible(replica_id, follower)
        ):
            return None
        return self._propose((*self.isr, replica_id), own_epoch)

    def shrink(self, leader_end: int, now_ms: int, own_epoch: int) -> Proposal | None:
        """Return the proposal to remove followers that were not caught up for too long, if there are any."""
        if self.proposed is not None:
            return None
        behind = {
            replica
            for replica in self.isr
            if (follower := self.followers.get(replica)) is not None
            and not follower.is_caught_up(leader_end, now_ms, self._max_lag_ms)
        }
        return self._propose(tuple(each for each in self.isr if each not in behind), own_epoch) if behind else None

    def _propose(self, isr: tuple[int, ...], own_epoch: int) -> Proposal:
        epochs = []
        for replica in isr:
            follower = self.followers.get(replica)
            known = UNKNOWN_EPOCH if follower is None or follower.broker_epoch is None else follower.broker_epoch
            epochs.append((replica, own_epoch if replica == self._node_id else known))
        self.proposed = Proposal(tuple(epochs), self.leader_epoch, self.partition_epoch)
        return self.proposed

    def _is_eligible(self, replica_id: int, follower: Follower) -> bool:
        """Whether the controller would accept a replica in the ISR."""
        broker = self._broker_of(replica_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return follower.broker_epoch in (UNKNOWN_EPOCH, broker.epoch)


_OUTDATED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
