"""Where a follower cuts its log, and which of a leader's fetchers has a partition."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.replicas.following.followed import fetcher_number
from barnabas.replicas.following.truncation import truncation_offset
from barnabas.storage.epochs import EpochEndOffset

UNDEFINED = EpochEndOffset(-1, -1)


@pytest.mark.parametrize(
    ("diverging", "own", "expected"),
    [
        (EpochEndOffset(3, 40), EpochEndOffset(3, 50), 40),
        (EpochEndOffset(3, 55), EpochEndOffset(3, 50), 50),
        (EpochEndOffset(3, 70), EpochEndOffset(3, 65), 60),
        (EpochEndOffset(3, 40), EpochEndOffset(2, 30), 30),
        (EpochEndOffset(3, 20), EpochEndOffset(2, 30), 30),
        (EpochEndOffset(3, 40), UNDEFINED, 40),
        (EpochEndOffset(-1, 40), UNDEFINED, 40),
        (UNDEFINED, EpochEndOffset(3, 50), 25),
    ],
)
def test_the_cut_is_at_the_end_of_the_last_common_epoch(
    diverging: EpochEndOffset, own: EpochEndOffset, expected: int
) -> None:
    assert truncation_offset(diverging, own, 60, 25) == expected


def test_a_diverged_log_becomes_a_prefix_of_the_leaders_after_some_rounds() -> None:
    for seed in range(300):
        random = Random(seed)
        common = [epoch for epoch in range(1, 5) for _ in range(random.randrange(3))]
        leader = common + sorted(random.choices((5, 7, 9), k=random.randrange(1, 9)))
        follower = common + sorted(random.choices((6, 8), k=random.randrange(1, 9)))

        def epochs_of(log: list[int]) -> list[tuple[int, int]]:
            return [(epoch, log.index(epoch)) for epoch in dict.fromkeys(log)]

        for _ in range(20):
            if not follower:
                break
            last = follower[-1]
            found = [epoch for epoch in leader if epoch <= last]
            if not found:
                answer = EpochEndOffset(last, 0)
            else:
                answer = EpochEndOffset(found[-1], len(found))
            if answer.leader_epoch == last and answer.end_offset >= len(follower):
                break
            kept = [epoch for epoch in follower if epoch <= answer.leader_epoch]
            own = EpochEndOffset(kept[-1], len(kept)) if kept else EpochEndOffset(answer.leader_epoch, 0)
            follower = follower[: truncation_offset(answer, own, len(follower), 0)]
        assert follower == leader[: len(follower)], seed
        assert len(follower) >= len(common), seed
        assert epochs_of(follower) == epochs_of(leader)[: len(epochs_of(follower))]


def test_partitions_of_a_topic_are_spread_over_the_fetchers() -> None:
    assert [fetcher_number("orders", each, 1) for each in range(3)] == [0, 0, 0]
    assert {fetcher_number("orders", each, 3) for each in range(9)} == {0, 1, 2}
