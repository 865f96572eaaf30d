"""A queue with the order of Java's PriorityQueue, also among equals, so that a group gets the same tasks as from Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A binary heap. `priority` of an item must not change while it is in the queue."""

    def __init__(self, priority: Callable[[T], float], items: Iterable[T] = ()) -> None:
        self._priority = priority
        self._heap: list[T] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: T) -> None:
        heap, priority = self._heap, self._priority
        place, own = len(heap), priority(item)
        heap.append(item)
        while place:
            parent = (place - 1) // 2
            if own >= priority(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = item

    def poll(self) -> T:
        """Remove and return the item with the lowest priority value. Raises IndexError if the queue is empty."""
        heap, priority = self._heap, self._priority
        last = heap.pop()
        if not heap:
            return last
        first, own, place, size = heap[0], priority(last), 0, len(heap)
        while place < size // 2:
            child = 2 * place + 1
            if child + 1 < size and priority(heap[child]) > priority(heap[child + 1]):
                child += 1
            if own <= priority(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first
