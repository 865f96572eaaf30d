"""No load at all: what the machine adds to every row."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tools.apache_kafka import Node

from bench.stall_causes import cause

SECONDS = 2.0


@cause("nothing")
def nothing(node: Node) -> Iterator[None]:
    yield
    time.sleep(SECONDS)
