"""A leader's view of its followers: who is in sync, how far the high watermark goes, and what is proposed."""

from __future__ import annotations

import pytest

from barnabas.metadata.brokers import Broker
from barnabas.metadata.pmap import PMap
from barnabas.metadata.topics import Partition
from barnabas.replicas.leading import Decided, Leading, Proposal
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError

MAX_LAG_MS = 1000


def broker(broker_id: int, *, epoch: int = 7, fenced: bool = False, stopping: bool = False) -> Broker:
    return Broker(broker_id, epoch, ZERO_UUID, PMap(), PMap(), None, fenced, stopping, False, (), None)


def state(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    leader_epoch: int = 5,
    partition_epoch: int = 9,
) -> Partition:
    directories = (ZERO_UUID,) * len(replicas)
    return Partition(replicas, directories, isr, (), (), 1, 0, leader_epoch, partition_epoch, (), ())


class Led:
    """A partition that broker 1 leads, with a log end offset and a clock that tests set."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.brokers = {each: broker(each) for each in (1, 2, 3)}
        self.end, self.now_ms = 10, 100_000
        self.leading = Leading(1, state(isr), self.brokers.get, MAX_LAG_MS, self.now_ms)

    def fetched(self, replica: int, offset: int, *, start: int = 0, epoch: int = 7) -> None:
        self.leading.fetched(replica, offset, start, epoch, self.end, self.now_ms)

    @property
    def high_watermark(self) -> int:
        return self.leading.high_watermark(self.end, self.now_ms)

    def shrink(self) -> Proposal | None:
        return self.leading.shrink(self.end, self.now_ms, 7)

    def expand(self, replica: int, high_watermark: int = 10, epoch_start: int = 0) -> Proposal | None:
        return self.leading.expand(replica, high_watermark, epoch_start, 7)


def test_the_high_watermark_waits_for_all_in_sync_replicas_and_for_nobody_else() -> None:
    led = Led(isr=(1, 2))
    assert led.high_watermark == -1
    led.fetched(2, 6)
    assert led.high_watermark == 6
    led.fetched(3, 4)
    led.now_ms += MAX_LAG_MS + 1
    led.fetched(2, 9)
    assert led.high_watermark == 9


def test_the_high_watermark_waits_for_a_replica_that_is_about_to_join() -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 10)
    led.fetched(3, 10)
    led.end = 12
    led.fetched(2, 12)
    assert led.high_watermark == 10
    led.brokers[3] = broker(3, fenced=True)
    assert led.high_watermark == 12


def test_a_follower_leaves_the_isr_after_it_was_behind_for_the_maximal_lag() -> None:
    led = Led()
    led.fetched(2, 10)
    led.fetched(3, 8)
    led.now_ms += MAX_LAG_MS
    assert led.shrink() is None
    led.now_ms += 1
    assert led.shrink() == Proposal(((1, 7), (2, 7)), 5, 9)
    assert led.shrink() is None  # one proposal at a time


def test_a_follower_that_reaches_the_end_that_its_last_fetch_saw_keeps_up() -> None:
    led = Led()
    led.fetched(2, 10)
    for _ in range(5):
        led.end += 10
        led.now_ms += MAX_LAG_MS // 2
        led.fetched(3, led.end - 10)
        led.fetched(2, led.end)
    assert led.shrink() is None


def test_a_follower_joins_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    led = Led(isr=(1, 2))
    assert led.expand(3) is None
    led.fetched(3, 9)
    assert led.expand(3) is None
    assert led.expand(3, high_watermark=5, epoch_start=10) is None
    assert led.expand(3, high_watermark=5, epoch_start=9) == Proposal(((1, 7), (2, -1), (3, 7)), 5, 9)


@pytest.mark.parametrize("why_not", [broker(3, fenced=True), broker(3, stopping=True), broker(3, epoch=8), None])
def test_a_follower_does_not_join_if_the_controller_would_refuse_it(why_not: Broker | None) -> None:
    led = Led(isr=(1, 2))
    led.fetched(3, 10)
    if why_not is None:
        del led.brokers[3]
    else:
        led.brokers[3] = why_not
    assert led.expand(3) is None


def test_a_fetch_of_an_earlier_life_of_a_broker_is_refused() -> None:
    led = Led()
    with pytest.raises(KafkaError) as error:
        led.fetched(2, 10, epoch=6)
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    led.fetched(2, 10, epoch=-1)


def test_until_the_controller_decides_the_high_watermark_waits_for_the_old_and_the_new_isr() -> None:
    led = Led()
    led.fetched(2, 10)
    led.now_ms += MAX_LAG_MS + 1
    led.fetched(2, 10)
    proposal = led.shrink()
    assert proposal is not None
    assert (led.leading.isr, led.leading.maximal_isr, led.high_watermark) == ((1, 2, 3), (1, 2, 3), -1)
    assert not led.leading.answered(proposal, Decided(1, 5, (1, 2), 10))
    assert (led.leading.isr, led.leading.maximal_isr, led.high_watermark) == ((1, 2), (1, 2), 10)
    led.leading.decided(state((1, 2, 3), partition_epoch=9), led.now_ms)  # older than the answer
    assert led.leading.isr == (1, 2)
    led.leading.decided(state((1, 2, 3), partition_epoch=11), led.now_ms)
    assert led.leading.maximal_isr == (1, 2, 3)


@pytest.mark.parametrize(
    ("code", "again", "pending"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.NEW_LEADER_ELECTED, False, True),
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
    ],
)
def test_an_error_drops_a_proposal_keeps_it_until_the_metadata_comes_or_sends_it_again(
    code: ErrorCode, again: bool, pending: bool
) -> None:
    led = Led(isr=(1, 2))
    led.fetched(3, 10)
    proposal = led.expand(3)
    assert proposal is not None
    assert led.leading.answered(proposal, code) == again
    assert (led.leading.proposed is proposal) == pending
    led.leading.decided(state((1, 2), partition_epoch=10), led.now_ms)
    assert led.leading.proposed is None
    assert not led.leading.answered(proposal, Decided(1, 5, (1,), 10))
    assert led.leading.isr == (1, 2)


def test_progress_survives_a_new_epoch_of_the_same_leader_and_removed_replicas_are_forgotten() -> None:
    led = Led()
    led.fetched(2, 10)
    led.leading.decided(state((1, 2), replicas=(1, 2), leader_epoch=6, partition_epoch=10), led.now_ms)
    assert {each: follower.log_end_offset for each, follower in led.leading.followers.items()} == {2: 10}
    led.fetched(3, 10)
    assert list(led.leading.followers) == [2]


def test_the_low_watermark_is_the_lowest_start_of_the_replicas_on_live_brokers() -> None:
    led = Led()
    led.fetched(2, 10, start=4)
    led.fetched(3, 10, start=2)
    assert led.leading.low_watermark(5) == 2
    led.brokers[3] = broker(3, fenced=True)
    assert led.leading.low_watermark(5) == 4


def test_consumers_may_read_from_in_sync_followers_that_have_the_offset() -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 10, start=4)
    led.fetched(3, 10, start=0)
    assert [replica for replica, _ in led.leading.readable_replicas(4)] == [2]
    assert list(led.leading.readable_replicas(3)) == []
    assert list(led.leading.readable_replicas(11)) == []
