"""The order of Kafka's hash tables, for names that a client has sent."""

from __future__ import annotations

import pytest

from barnabas.config.hash_order import hash_order, hash_order_in_slices
from barnabas.steps import ROWS_PER_STEP
from tests.counting import counted


@pytest.mark.parametrize("count", [0, 1, 12, 13, 5000])
def test_the_order_in_slices_is_the_same(count: int) -> None:
    names = [f"Name-{number * 7919 % 104729}-é" for number in range(count)]
    found, pauses = counted(hash_order_in_slices(names))
    assert found == hash_order(names) and pauses >= count // ROWS_PER_STEP
