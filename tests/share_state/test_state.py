"""Delivery states of share partitions are merged as Kafka merges them."""

from __future__ import annotations

import random
from itertools import pairwise

from barnabas.share_state.state import StateBatch, combined
from barnabas.steps import at_once

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def batch(first: int, last: int, count: int = 1, state: int = AVAILABLE) -> StateBatch:
    return StateBatch(first, last, count, state)


def merge(known: list[StateBatch], new: list[StateBatch], start_offset: int = -1) -> list[StateBatch]:
    return list(at_once(combined(known, new, start_offset)))


def test_adjoining_batches_of_the_same_delivery_become_one() -> None:
    assert merge([batch(0, 4)], [batch(5, 9)]) == [batch(0, 9)]
    assert merge([batch(0, 4)], [batch(6, 9)]) == [batch(0, 4), batch(6, 9)]


def test_the_later_delivery_wins_where_batches_overlap() -> None:
    later = batch(3, 5, 2, ACKNOWLEDGED)
    assert merge([batch(0, 9)], [later]) == [batch(0, 2), later, batch(6, 9)]
    assert merge([later], [batch(0, 9)]) == [batch(0, 2), later, batch(6, 9)]
    assert merge([batch(0, 4, 2)], [batch(2, 9)]) == [batch(0, 4, 2), batch(5, 9)]


def test_what_is_before_the_start_offset_is_dropped() -> None:
    assert merge([batch(0, 9), batch(10, 12, 3)], [], 5) == [batch(5, 9), batch(10, 12, 3)]
    assert merge([batch(0, 4)], [], 5) == []


def test_every_offset_has_the_latest_delivery_of_any_batch() -> None:
    choose = random.Random(7)
    for _ in range(300):
        given = []
        for _ in range(choose.randrange(1, 8)):
            first = choose.randrange(30)
            given.append(batch(first, first + choose.randrange(8), choose.randrange(1, 4), choose.choice([0, 2, 4])))
        half = len(given) // 2
        merged = merge(given[:half], given[half:], start := choose.choice([-1, 5]))
        expected: dict[int, tuple[int, int]] = {}
        for each in given:
            for offset in range(max(each.first_offset, start), each.last_offset + 1):
                expected[offset] = max(expected.get(offset, each.delivery), each.delivery)
        found = {offset: each.delivery for each in merged for offset in range(each.first_offset, each.last_offset + 1)}
        assert found == expected
        assert all(before.last_offset < after.first_offset for before, after in pairwise(merged))
