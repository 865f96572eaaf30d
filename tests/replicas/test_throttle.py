"""Replication throttles: the rate of the last seconds decides, and lists name the replicas."""

from __future__ import annotations

from barnabas.replicas.throttle import Throttle


def test_the_rate_is_that_of_the_last_seconds() -> None:
    now_ms = [0]
    limit = [10**12]
    throttle = Throttle(lambda: limit[0], lambda: now_ms[0])
    throttle.record(10**9)
    assert not throttle.is_exceeded
    limit[0] = 1000
    assert throttle.is_exceeded
    now_ms[0] = 11_000
    assert not throttle.is_exceeded
    for second in range(20, 40):
        now_ms[0] = second * 1000
        throttle.record(900)
    assert not throttle.is_exceeded
    throttle.record(2500)
    assert throttle.is_exceeded
    now_ms[0] += 3000
    assert not throttle.is_exceeded
