"""Quotas on partitions created and deleted."""

from __future__ import annotations

import pytest

from barnabas.controller import mutation_quotas
from barnabas.controller.mutation_quotas import Charge, ChargeCounter, MutationQuota, MutationQuotas
from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity, Quotas, quota_entity
from barnabas.wire import ErrorCode, KafkaError

Parts = dict[str, str | None]


def quotas(*rates: tuple[Parts, float], key: str = "controller_mutation_rate") -> Quotas:
    found: dict[QuotaEntity, PMap[str, float]] = {quota_entity(p): PMap({key: rate}) for p, rate in rates}
    return PMap(found)


MAX_BYTES = 1 << 20
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
        self.state = MutationQuotas(window_num, window_size_seconds, MAX_BYTES)
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
        quota = self.state.quota(rates, user, client_id, now_ms, strict=strict)
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
    state = MutationQuotas(2, 1, MAX_BYTES)
    before = state.quota(ALICE, "alice", "c", 0, strict=True)
    _, charge = decided(before, 100)
    assert state.quota(ALICE, "alice", "c", 0, strict=True) == before
    state.take(before, charge)
    assert state.quota(ALICE, "alice", "c", 0, strict=True).tokens == before.tokens - 100


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


LEVELS: list[Parts] = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]


@pytest.mark.parametrize("first", range(8))
def test_the_most_specific_quota_counts(first: int) -> None:
    rates = quotas(*((parts, float(rate)) for rate, parts in enumerate(LEVELS, 1) if rate > first))
    assert Node(1).refused(rates, "u", "c", 0, first + 1, 1, 1) == [False, False, True]


@pytest.mark.parametrize(
    ("rates", "clients", "shared"),
    [
        (quotas(({"user": None}, 1.0)), [("u", "a"), ("u", "b")], True),
        (quotas(({"user": None}, 1.0)), [("u", "a"), ("v", "a")], False),
        (quotas(({"client-id": None}, 1.0)), [("u", "a"), ("v", "a")], True),
        (quotas(({"client-id": None}, 1.0)), [("u", "a"), ("u", "b")], False),
        (quotas(({"user": None, "client-id": None}, 1.0)), [("u", "a"), ("u", "b")], False),
        (quotas(({"user": "u"}, 1.0), ({"client-id": None}, 1.0)), [("u", "a"), ("u", "b")], True),
        (quotas(({"user": "x"}, 1.0), ({"client-id": None}, 1.0)), [("u", "a"), ("v", "a")], True),
    ],
)
def test_clients_share_a_bucket_as_far_as_their_quota_does(
    rates: Quotas, clients: list[tuple[str, str]], shared: bool
) -> None:
    node = Node(1)
    one, other = clients
    assert node.refused(rates, *one, 0, 100) == [False]
    assert node.refused(rates, *other, 0, 1) == [shared]


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
    state, rates = MutationQuotas(11, 1, 200_000), quotas(({"client-id": None}, 1.0))
    for number in range(100):
        state.quota(rates, "u", f"{number:030000}", 0, strict=True)
        assert state.buckets.held_bytes <= 200_000
    assert (len(state.buckets), state.buckets.forgotten_total) == (6, 94)
