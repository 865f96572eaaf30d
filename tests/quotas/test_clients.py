"""Clients above one quota."""

from __future__ import annotations

from math import inf

from barnabas.quotas.bounds import PRODUCER_BYTE_RATE, Bounds
from barnabas.quotas.clients import ClientQuota
from barnabas.quotas.rate import Windows
from tests.quotas.entities import Parts, bounds

WINDOWS = Windows(11, 1000)


def of(*values: tuple[Parts, float]) -> Bounds:
    return bounds(*values, key=PRODUCER_BYTE_RATE)


def test_a_client_above_its_bound_waits_until_its_rate_is_the_bound() -> None:
    quota = ClientQuota(of(({"user": "u"}, 1000.0)), WINDOWS)
    assert quota.record("u", "c", 10_000, 0) == 0
    assert quota.record("u", "d", 5000, 0) == 5000
    assert quota.record("v", "c", 10**9, 0) == 0


def test_a_throttle_time_has_a_maximum() -> None:
    quota = ClientQuota(of(({"user": "u"}, 1.0)), WINDOWS, max_throttle_time_ms=1000)
    assert quota.record("u", "c", 10**9, 0) == 1000


def test_what_is_only_added_counts_for_the_next_request() -> None:
    quota = ClientQuota(of(({"user": "u"}, 1000.0)), WINDOWS)
    quota.add("u", "c", 15_000, 0)
    assert quota.record("u", "c", 0, 0) == 5000
    quota.add("u", "c", -15_000, 0)
    assert quota.record("u", "c", 0, 0) == 0


def test_a_changed_bound_applies_to_what_was_recorded_before() -> None:
    found = of(({"user": "u"}, 1e9), ({"user": "v"}, 1.0))
    quota = ClientQuota(found, WINDOWS)
    assert quota.record("u", "c", 15_000, 0) == 0
    found.replace({(("user", "u"),): 1000.0})
    assert quota.record("u", "c", 0, 0) == 5000


def test_a_client_without_a_bound_is_measured_while_others_have_one() -> None:
    found = of(({"user": "v"}, 1.0))
    quota = ClientQuota(found, WINDOWS)
    assert quota.record("u", "c", 15_000, 0) == 0
    found.replace({(("user", "u"),): 1000.0})
    assert quota.record("u", "c", 0, 0) == 5000


def test_without_bounds_nothing_is_remembered() -> None:
    quota = ClientQuota(Bounds(), WINDOWS)
    assert quota.record("u", "c", 10**9, 0) == 0
    quota.add("u", "c", 10**9, 0)
    assert len(quota) == 0


def test_at_once_a_client_can_do_what_all_windows_but_one_allow() -> None:
    quota = ClientQuota(of(({"user": "u"}, 1000.0)), WINDOWS)
    assert (quota.most_at_once("u", "c"), quota.most_at_once("v", "c")) == (10_000, inf)
    assert quota.record("u", "c", 10_000, 0) == 0
    assert quota.record("u", "c", 1, 0) == 1
