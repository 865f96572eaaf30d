"""Quotas on partitions created and deleted."""

from __future__ import annotations

import pytest

from barnabas.controller import mutation_quotas
from barnabas.controller.mutation_quotas import MutationQuota, MutationQuotas
from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity, Quotas, quota_entity
from barnabas.wire import ErrorCode, KafkaError

Parts = dict[str, str | None]


def quotas(*rates: tuple[Parts, float], key: str = "controller_mutation_rate") -> Quotas:
    found: dict[QuotaEntity, PMap[str, float]] = {quota_entity(p): PMap({key: rate}) for p, rate in rates}
    return PMap(found)


ALICE = quotas(({"user": "alice"}, 5.0))


def is_refused(quota: MutationQuota, partitions: int, now_ms: int) -> bool:
    try:
        quota.record(partitions, now_ms)
    except KafkaError as error:
        assert error.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return True
    return False


def test_a_strict_quota_takes_any_burst_and_refuses_until_it_is_paid_back() -> None:
    state = MutationQuotas(window_num=100, window_size_seconds=1)
    first = state.quota(ALICE, "alice", "c", 0, strict=True)
    assert not is_refused(first, 560, 0)  # sixty more than the bucket holds
    assert first.throttle_time_ms(0) == 0
    second = state.quota(ALICE, "alice", "other", 2000, strict=True)
    assert is_refused(second, 1, 2000)
    assert second.throttle_time_ms(2000) == 10_000
    assert second.throttle_time_ms(7000) == 5000 and second.throttle_time_ms(20_000) == 0
    third = state.quota(ALICE, "alice", None, 12_000, strict=True)
    assert not is_refused(third, 1, 12_000)


def test_a_permissive_quota_refuses_nothing_and_makes_wait_at_once() -> None:
    state = MutationQuotas(window_num=11, window_size_seconds=1)
    quota = state.quota(ALICE, "alice", "c", 0, strict=False)
    assert not is_refused(quota, 55, 0) and quota.throttle_time_ms(0) == 0
    assert not is_refused(quota, 10, 0) and quota.throttle_time_ms(0) == 2000
    assert not is_refused(quota, 10, 1000) and quota.throttle_time_ms(1000) == 3000


def test_several_records_of_one_request_count_one_after_the_other() -> None:
    quota = MutationQuotas(2, 1).quota(ALICE, "alice", "c", 0, strict=True)
    assert [is_refused(quota, 6, 0) for _ in range(4)] == [False, False, True, True]


def test_a_bucket_does_not_hold_more_than_its_windows() -> None:
    state = MutationQuotas(2, 1)
    assert not is_refused(state.quota(ALICE, "alice", "c", 0, strict=True), 0, 0)
    late = state.quota(ALICE, "alice", "c", 1_000_000, strict=True)
    assert [is_refused(late, 11, 1_000_000), is_refused(late, 1, 1_000_000)] == [False, True]


@pytest.mark.parametrize("other", [quotas(), quotas(({"user": "alice"}, 5.0), key="producer_byte_rate")])
def test_without_such_a_quota_nothing_is_refused(other: Quotas) -> None:
    quota = MutationQuotas(1, 1).quota(other, "alice", "c", 0, strict=True)
    assert not any(is_refused(quota, 10_000, 0) for _ in range(3))
    assert quota.throttle_time_ms(0) == 0


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
    state = MutationQuotas(1, 1)
    quota = state.quota(rates, "u", "c", 0, strict=True)
    assert [is_refused(quota, first + 1, 0), is_refused(quota, 1, 0), is_refused(quota, 1, 0)] == [False, False, True]


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
    state = MutationQuotas(1, 1)
    one, other = (state.quota(rates, *client, 0, strict=True) for client in clients)
    one.record(100, 0)
    assert is_refused(other, 1, 0) == shared


def test_a_client_without_an_id_has_no_quota_of_client_ids() -> None:
    for rates in (
        quotas(({"client-id": None}, 1.0)),
        quotas(({"user": "u", "client-id": None}, 1.0), ({"user": "u"}, 1.0)),
    ):
        quota = MutationQuotas(1, 1).quota(rates, "u", None, 0, strict=True)
        assert not any(is_refused(quota, 100, 0) for _ in range(2))


def test_a_changed_rate_counts_at_once() -> None:
    state = MutationQuotas(1, 1)
    state.quota(ALICE, "alice", "c", 0, strict=True).record(105, 0)
    faster = state.quota(quotas(({"user": "alice"}, 1000.0)), "alice", "c", 100, strict=True)
    assert not is_refused(faster, 1, 100)


def test_no_more_clients_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation_quotas, "BUCKETS_MAX", 2)
    state, rates = MutationQuotas(1, 1), quotas(({"user": None}, 1.0))
    for user in ("a", "b", "a", "c"):
        state.quota(rates, user, "c", 0, strict=False).record(100, 0)
    assert [is_refused(state.quota(rates, user, "c", 0, strict=True), 1, 0) for user in "acb"] == [True, True, False]
