"""New connections per second."""

from __future__ import annotations

from barnabas.quotas.bounds import CONNECTION_CREATION_RATE, Bounds
from barnabas.quotas.connections import ConnectionRates
from barnabas.quotas.rate import Windows
from tests.quotas.entities import bounds

WINDOWS = Windows(11, 1000)


def rates(limit: int = 2**31 - 1, by_ip: Bounds | None = None, **limits: int) -> ConnectionRates:
    found = ConnectionRates(WINDOWS, by_ip or Bounds())
    found.limit, found.limits = limit, limits
    return found


def waits(found: ConnectionRates, count: int, listener_name: str = "A", *, is_protected: bool = False) -> list[int]:
    return [found.accepted(listener_name, 0, is_protected=is_protected) for _ in range(count)]


def test_a_connection_above_the_rate_of_its_listener_waits_and_other_listeners_do_not() -> None:
    found = rates(A=2)
    assert waits(found, 22) == [0] * 20 + [500, 1000]
    assert waits(found, 22, "B") == [0] * 22


def test_nobody_waits_longer_than_a_window() -> None:
    assert waits(rates(A=1), 100)[-1] == 1000


def test_the_limit_of_the_node_is_for_all_listeners_together_except_a_protected_one() -> None:
    found = rates(limit=2)
    assert waits(found, 10) + waits(found, 11, "B") == [0] * 20 + [500]
    assert waits(found, 30, "C", is_protected=True) == [0] * 30
    assert waits(found, 1) == [1000]


def test_a_connection_above_the_rate_of_its_address_counts_for_nothing() -> None:
    by_ip = bounds(({"ip": "10.0.0.1"}, 2.0), key=CONNECTION_CREATION_RATE)
    found = rates(limit=3, by_ip=by_ip, A=3)
    for _ in range(20):
        assert (found.accepted("A", 0), found.throttle_time_ms("A", "10.0.0.1", 0)) == (0, 0)
    for _ in range(30):
        assert (found.accepted("A", 0), found.throttle_time_ms("A", "10.0.0.1", 0)) == (0, 500)
    assert found.throttle_time_ms("A", "10.0.0.2", 0) == 0
    assert waits(found, 11) == [0] * 10 + [333]
