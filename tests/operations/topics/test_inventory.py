"""All topics in one list, and how fast they grow. Values in, values out."""

from __future__ import annotations

from collections import Counter

from barnabas.client.state import Partition, Topic
from barnabas.operations.topics.inventory import Inventory, summaries, with_rates
from barnabas.wire import Uuid

ID = Uuid(bytes(15) + b"\x01")


def topic(name: str, *partitions: Partition) -> Topic:
    return Topic(name, ID, False, {each.partition_index: each for each in partitions})


def test_the_worst_partition_decides_the_status() -> None:
    good = Partition(0, 1, 0, (1, 2), (1, 2))
    found = summaries(
        [
            topic("c", good, Partition(1, -1, 0, (1, 2), (2,))),
            topic("b", good, Partition(1, 1, 0, (1, 2), (1,))),
            topic("a", good),
        ],
        {"a": 100},
        Counter({"a": 2}),
    )
    assert [(each.name, each.status) for each in found.values()] == [
        ("a", "ok"),
        ("b", "under-replicated"),
        ("c", "offline"),
    ]
    assert (found["a"].size_bytes, found["a"].groups, found["b"].groups) == (100, 2, 0)
    assert found["a"].replication_factor == 2


def test_growth_is_the_difference_of_two_inventories_and_never_negative() -> None:
    def at(at_s: float, **sizes: int) -> Inventory:
        return Inventory(summaries([topic(name, Partition(0, 1)) for name in sizes], sizes, None), at_s, True)

    first = at(0, grows=100, shrinks=100, goes=1)
    now = with_rates(first, at(10, grows=600, shrinks=50, new=7))
    assert {name: each.bytes_per_second for name, each in now.topics.items()} == {
        "grows": 50.0,
        "new": None,
        "shrinks": 0.0,
    }
    assert with_rates(None, first) is first
    assert with_rates(first, at(0.5, grows=900)).topics["grows"].bytes_per_second is None, "too soon to tell"
