"""Who may read when the memory of requests is short: the accounting alone, without sockets."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.request_memory import FREE_BYTES, RequestMemory

MB = 1 << 20


def test_below_the_limit_nobody_waits_and_above_it_everybody_with_more_than_a_little() -> None:
    memory: RequestMemory[str] = RequestMemory(4 * MB)
    assert not memory.hold("a", 2 * MB)
    assert not memory.hold("b", 2 * MB)
    assert memory.is_short
    assert memory.hold("c", MB)
    assert not memory.hold("small", FREE_BYTES)
    assert memory.hold("a", 2 * MB)
    assert list(memory.waiting) == ["c", "a"]
    assert memory.held_bytes == 5 * MB + FREE_BYTES
    assert memory.exhausted_total == 1


def test_a_holder_waits_before_it_takes_memory_that_is_not_there() -> None:
    memory: RequestMemory[str] = RequestMemory(4 * MB)
    assert not memory.hold("a", MB, growth_bytes=3 * MB)
    assert memory.hold("b", MB, growth_bytes=3 * MB)


def test_released_memory_goes_to_those_that_wait_in_their_order() -> None:
    memory: RequestMemory[str] = RequestMemory(4 * MB)
    memory.hold("a", 4 * MB)
    for name in ("b", "c", "d"):
        assert memory.hold(name, FREE_BYTES + 1, growth_bytes=MB)
    assert memory.released() == []
    memory.hold("a", 3 * MB // 2)
    assert memory.released() == ["b", "c"]
    assert list(memory.waiting) == ["d", "a"]
    memory.forget("a")
    assert memory.released() == ["d"]
    assert memory.waiting_count == 0


def test_nobody_overtakes_a_large_request_that_waits() -> None:
    memory: RequestMemory[str] = RequestMemory(4 * MB)
    memory.hold("a", 2 * MB)
    assert memory.hold("large", MB, growth_bytes=2 * MB)
    assert memory.hold("late", FREE_BYTES + 1)
    assert memory.released() == []
    memory.forget("a")
    assert memory.released()[0] == "large"


def test_one_reads_ahead_of_the_others_until_it_holds_little() -> None:
    memory: RequestMemory[str] = RequestMemory(MB)
    memory.hold("a", MB)
    assert memory.hold("b", MB)
    assert memory.hold("c", MB)
    memory.let_ahead("c")
    assert not memory.hold("c", 5 * MB)
    assert memory.ahead == "c"
    memory.forget("c")
    assert memory.ahead is None


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_the_sum_is_right_and_everybody_is_released_in_the_end(seed: int) -> None:
    random = Random(seed)
    memory: RequestMemory[int] = RequestMemory(8 * MB)
    held: dict[int, int] = {}
    for _ in range(2000):
        holder = random.randrange(50)
        size = random.choice((0, 100, FREE_BYTES, MB, 3 * MB))
        held[holder] = size
        must_wait = memory.hold(holder, size, random.choice((0, MB)))
        assert must_wait == (holder in memory.waiting)
        assert memory.held_bytes == sum(map(memory.bytes_of, held))
        assert 0 <= memory.bytes_of(holder) - size <= MB
        assert all(held[each] > FREE_BYTES for each in memory.waiting)
        memory.released()
        if memory.waiting_count and memory.ahead is None:
            memory.let_ahead(random.choice(list(memory.waiting)))
    for holder in held:
        memory.forget(holder)
    assert (memory.held_bytes, memory.waiting_count, memory.ahead, list(memory.holders)) == (0, 0, None, [])
