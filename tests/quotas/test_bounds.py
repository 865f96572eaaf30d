"""Which quota applies to a client."""

from __future__ import annotations

import pytest

from barnabas.metadata.pmap import PMap
from barnabas.quotas.bounds import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    KEYS,
    PRODUCER_BYTE_RATE,
    Bounds,
    QuotaBounds,
)
from barnabas.steps import at_once
from tests.counting import counted
from tests.quotas.entities import LEVELS, Parts, bounds, quotas

KEY = PRODUCER_BYTE_RATE


def bound_of(found: Bounds, user: str, client_id: str | None) -> float | None:
    client = found.client(user, client_id)
    return None if client is None else found.of(client)


@pytest.mark.parametrize("first", range(8))
def test_of_all_quotas_from_a_level_on_that_level_applies(first: int) -> None:
    found = bounds(*((parts, float(level)) for level, parts in enumerate(LEVELS) if level >= first), key=KEY)
    assert bound_of(found, "u", "c") == first


@pytest.mark.parametrize("level", range(8))
def test_a_quota_of_one_level_alone_applies(level: int) -> None:
    found = bounds((LEVELS[level], 5.0), key=KEY)
    assert bound_of(found, "u", "c") == 5.0


@pytest.mark.parametrize("level", range(8))
def test_a_named_quota_does_not_apply_to_others(level: int) -> None:
    parts = LEVELS[level]
    found = bounds((parts, 5.0), key=KEY)
    others = ("v" if parts.get("user") == "u" else "u", "d" if parts.get("client-id") == "c" else "c")
    assert bound_of(found, *others) == (None if "u" in parts.values() or "c" in parts.values() else 5.0)


@pytest.mark.parametrize(
    ("values", "clients", "shared"),
    [
        ([{"user": None}], [("u", "a"), ("u", "b")], True),
        ([{"user": None}], [("u", "a"), ("v", "a")], False),
        ([{"client-id": None}], [("u", "a"), ("v", "a")], True),
        ([{"client-id": None}], [("u", "a"), ("u", "b")], False),
        ([{"user": None, "client-id": None}], [("u", "a"), ("u", "b")], False),
        ([{"user": "u"}, {"client-id": None}], [("u", "a"), ("u", "b")], True),
        ([{"user": "x"}, {"client-id": None}], [("u", "a"), ("v", "a")], True),
    ],
)
def test_clients_share_a_bound_as_far_as_it_names_them_together(
    values: list[Parts], clients: list[tuple[str, str]], shared: bool
) -> None:
    found = bounds(*((parts, 1.0) for parts in values), key=KEY)
    one, other = (found.client(*client) for client in clients)
    assert (one == other) is shared


def test_an_address_has_its_own_bound_or_the_default() -> None:
    found = bounds(({"ip": "10.0.0.1"}, 5.0), ({"ip": None}, 9.0), key=CONNECTION_CREATION_RATE)
    assert [found.of_ip(host) for host in ("10.0.0.1", "10.0.0.2")] == [5.0, 9.0]
    assert bounds(({"ip": "10.0.0.1"}, 5.0), key=CONNECTION_CREATION_RATE).of_ip("10.0.0.2") is None


def test_bounds_follow_the_quotas_and_one_key_does_not_touch_the_other() -> None:
    found = QuotaBounds()
    assert not any(found[key].is_any for key in KEYS)
    at_once(found.follow(quotas(({"user": "u"}, 1.0), key=KEY)))
    assert [key for key in KEYS if found[key].is_any] == [KEY]
    at_once(found.follow(quotas(({"user": "u"}, 2.0), key=CONSUMER_BYTE_RATE)))
    assert [key for key in KEYS if found[key].is_any] == [CONSUMER_BYTE_RATE]
    at_once(found.follow(PMap()))
    assert not any(found[key].is_any for key in KEYS)


def test_many_quotas_are_followed_in_slices_and_apply_as_a_whole() -> None:
    found = QuotaBounds()
    users: list[Parts] = [{"user": f"u{number}"} for number in range(5000)]
    work = found.follow(quotas(*((user, 1.0) for user in users), key=KEY))
    next(work)
    assert not found[KEY].is_any
    assert counted(work)[1] >= 8
    assert bound_of(found[KEY], "u4999", "c") == 1.0
