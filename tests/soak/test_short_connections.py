"""Short connections against a real node: each is answered or breaks off, and all are counted."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tools.apache_kafka import HOST, free_ports

from barnabas.testing import Broker
from tests.soak.measure import sample
from tests.soak.short_connections import AT_ONCE, BROKEN_EVERY, ShortConnections

WAIT_S = 60.0
COUNT = 4 * AT_ONCE


def sockets() -> int:
    found = sample(0, os.getpid(), Path())
    assert found is not None
    return found.sockets


def test_nine_of_ten_are_answered_the_tenth_breaks_off_and_none_stays_open() -> None:
    with Broker() as broker:
        before = sockets()
        short = ShortConnections((broker.host, broker.port), COUNT, over_s=0)
        short.start()
        short.finish(WAIT_S)
        assert (short.opened, short.failed) == (COUNT, 0)
        assert (short.answered, short.broken_off) == (COUNT - COUNT // BROKEN_EVERY, COUNT // BROKEN_EVERY)
        deadline_s = time.monotonic() + WAIT_S
        while sockets() > before and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert sockets() <= before


def test_those_that_nobody_answers_have_failed() -> None:
    short = ShortConnections((HOST, free_ports(1)[0]), 20, over_s=0)
    short.start()
    short.finish(WAIT_S)
    assert (short.opened, short.answered, short.broken_off, short.failed) == (20, 0, 0, 20)


def test_who_does_not_wait_for_them_ends_them() -> None:
    short = ShortConnections((HOST, free_ports(1)[0]), 1000, over_s=2000)
    short.start()
    short.finish(0.01)
    assert short.opened < 1000
