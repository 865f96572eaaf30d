"""Which partition a key belongs to."""

from __future__ import annotations

from barnabas.replicated.placement import partition_for


def test_keys_belong_to_the_partitions_that_kafka_has_them_in() -> None:
    """Seen in a cluster with three partitions; the hashes of some are negative."""
    known = {"g-classic": 1, "g-empty": 2, "g-consumer": 0, "g-hand": 0, "g-simple": 1, "g-txn": 2, "": 0}
    assert {key: partition_for(key, 3) for key in known} == known


def test_a_hash_without_an_opposite_counts_as_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0  # the hash of this text is the least number there is


def test_what_is_not_ascii_counts_by_its_utf_16_units() -> None:
    assert partition_for("\U0001f600", 1000) == abs(0xD83D * 31 + 0xDE00) % 1000
