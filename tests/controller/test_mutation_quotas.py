"""Quotas on partitions created and deleted."""

from __future__ import annotations

from functools import partial

import pytest

from barnabas.controller import mutation_quotas
from barnabas.controller.mutation_quotas import Charge, ChargeCounter, MutationQuota, MutationQuotas
from barnabas.metadata.quotas import Quotas
from barnabas.quotas.bounds import CONTROLLER_MUTATION_RATE, QuotaBounds
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError
from tests.quotas import entities

MAX_BYTES = 1 << 20
quotas = partial(entities.quotas, key=CONTROLLER_MUTATION_RATE)
ALICE = quotas(({"user": "alice"}, 5.0))


def decided(quota: MutationQuota, *partitions: int) -> tuple[list[bool], Charge]:
    """Which of several changes a decision refuses, and its charge."""
    counter, refused = ChargeCounter(quota), []
    for each in partitions:
        try:
            counter.count(each)
            refused.append(False)
        except KafkaError as error:
            assert error.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            refused.append(True)
    return refused, counter.charge


class Node:
    """Runs decisions and takes their charges."""

    def __init__(self, window_num: int, window_size_seconds: int = 1) -> None:
        self.bounds = QuotaBounds()
        self.state = MutationQuotas(self.bounds[CONTROLLER_MUTATION_RATE], window_num, window_size_seconds, MAX_BYTES)
        self.charge = Charge()

    def refused(
        self,
        rates: Quotas,
        user: str,
        client_id: str | None,
        now_ms: int,
        *partitions: int,
        strict: bool = True,
    ) -> list[bool]:
        at_once(self.bounds.follow(rates))
        quota = self.state.quota(user, client_id, now_ms, strict=strict)
        refused, self.charge = decided(quota, *partitions)
        self.state.take(quota, self.charge)
        return refused


def test_a_strict_quota_takes_any_burst_and_refuses_until_it_is_paid_back() -> None:
    node = Node(window_num=100)
    assert node.refused(ALICE, "alice", "c", 0, 560) == [False]  # sixty more than the bucket holds
    assert node.charge == Charge(560, 0)
    assert node.refused(ALICE, "alice", "other", 2000, 1) == [True]
    assert node.charge == Charge(0, 10_000)
    assert [node.charge.remaining_ms(elapsed_ms) for elapsed_ms in (0, 5000, 18_000)] == [10_000, 5000, 0]
    assert node.refused(ALICE, "alice", None, 12_000, 1) == [False]


def test_a_permissive_quota_refuses_nothing_and_makes_wait_at_once() -> None:
    node = Node(window_num=11)
    assert node.refused(ALICE, "alice", "c", 0, 55, strict=False) == [False]
    assert node.charge.throttle_time_ms == 0
    assert node.refused(ALICE, "alice", "c", 0, 4, 6, strict=False) == [False, False]
    assert node.charge == Charge(10, 2000)
    assert node.refused(ALICE, "alice", "c", 1000, 10, strict=False) == [False]
    assert node.charge.throttle_time_ms == 3000


def test_several_changes_of_one_request_count_one_after_the_other() -> None:
    node = Node(2)
    assert node.refused(ALICE, "alice", "c", 0, 6, 6, 6, 6) == [False, False, True, True]
    assert node.charge == Charge(12, 400)


def test_a_decision_leaves_the_bucket_alone_until_its_charge_is_taken() -> None:
    node = Node(2)
    node.refused(ALICE, "alice", "c", 0)
    state = node.state
    before = state.quota("alice", "c", 0, strict=True)
    _, charge = decided(before, 100)
    assert state.quota("alice", "c", 0, strict=True) == before
    state.take(before, charge)
    assert state.quota("alice", "c", 0, strict=True).tokens == before.tokens - 100


def test_a_bucket_does_not_hold_more_than_its_windows() -> None:
    node = Node(2)
    assert node.refused(ALICE, "alice", "c", 0, 0) == [False]
    assert node.refused(ALICE, "alice", "c", 1_000_000, 11, 1) == [False, True]


@pytest.mark.parametrize("other", [quotas(), quotas(({"user": "alice"}, 5.0), key="producer_byte_rate")])
def test_without_such_a_quota_nothing_is_refused(other: Quotas) -> None:
    node = Node(1)
    for _ in range(2):
        assert node.refused(other, "alice", "c", 0, 10_000, 10_000, 10_000) == [False] * 3
        assert node.charge.throttle_time_ms == 0


def test_a_client_without_an_id_has_no_quota_of_client_ids() -> None:
    for rates in (
        quotas(({"client-id": None}, 1.0)),
        quotas(({"user": "u", "client-id": None}, 1.0), ({"user": "u"}, 1.0)),
    ):
        assert Node(1).refused(rates, "u", None, 0, 100, 100) == [False, False]


def test_a_changed_rate_counts_at_once() -> None:
    node = Node(1)
    assert node.refused(ALICE, "alice", "c", 0, 105) == [False]
    assert node.refused(quotas(({"user": "alice"}, 1000.0)), "alice", "c", 100, 1) == [False]


def test_no_more_clients_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation_quotas, "MAX_BUCKETS", 2)
    node, rates = Node(1), quotas(({"user": None}, 1.0))
    for user in ("a", "b", "a", "c"):
        node.refused(rates, user, "c", 0, 100, strict=False)
    assert [node.refused(rates, user, "c", 0, 1) for user in "acb"] == [[True], [True], [False]]


def test_clients_with_long_names_are_forgotten_when_their_names_need_too_much_memory() -> None:
    bounds = QuotaBounds()
    at_once(bounds.follow(quotas(({"client-id": None}, 1.0))))
    state = MutationQuotas(bounds[CONTROLLER_MUTATION_RATE], 11, 1, 200_000)
    for number in range(100):
        state.quota("u", f"{number:030000}", 0, strict=True)
        assert state.buckets.held_bytes <= 200_000
    assert (len(state.buckets), state.buckets.forgotten_total) == (6, 94)
