"""Records that are skipped since the given copies do not show that they are committed, or are damaged, and what to provide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.lake.reading.copies import Copy, verdicts
from barnabas.lake.reading.metadata_options import parse_options
from barnabas.lake.reading.metadata_parts import observe
from barnabas.lake.reading.metadata_skipped import damaged_copies, skipped
from tests.lake.metadata_golden import COMMITTED_END, LOG_END_OF_NODE_1, unpack
from tests.lake.reading.test_copies import copy


def sentence(*copies: Copy, voters: tuple[int, ...] = (), uncommitted: bool = False) -> str:
    found = skipped(copies, verdicts(copies, voters), voters, uncommitted=uncommitted)
    return "" if found is None else found.sentence()


def test_without_a_majority_the_number_and_the_missing_nodes_are_told() -> None:
    assert sentence(copy(1, 1, 1, 1)) == (
        "3 of 3 records of the metadata log are not known to be committed, and are skipped:"
        " a majority of the voters tells what is committed; also give the log dirs of 1 of nodes 2, 3"
    )
    assert "give the log dirs of 2 of nodes 2, 3, 4, 5" in sentence(copy(1, 1, 1, voters=5))
    assert "1 of 2 records of the metadata log is not known" in sentence(copy(1, 1, 1, snapshots=((1, 1),)))
    assert sentence(copy(1, 1, 1), uncommitted=True) == ""


def test_the_log_of_an_observer_tells_nothing_and_voters_may_have_to_be_named() -> None:
    assert "2 of nodes 1, 2, 3" in sentence(copy(4, 1, 1))
    assert "name them with --voters" in sentence(Copy("node1", 1, ((1, 0),), 0, 2))
    assert sentence(Copy("node1", 1, ((1, 0),), 0, 2), voters=(1,)) == ""


def test_what_a_majority_lacks_is_told_too_and_what_has_lost_is_not() -> None:
    assert "2 of 4 records" in sentence(copy(1, 1, 1, 1, 1), copy(2, 1, 1))
    assert "the log dirs of node 3 may tell" in sentence(copy(1, 1, 1, 1, 1), copy(2, 1, 1))
    assert "too few voters have them yet" in sentence(copy(1, 1, 1, 1), copy(2, 1, 1), copy(3, 1, 1))
    assert sentence(copy(1, 1, 1, 1, 1), copy(2, 1, 1, 2), copy(3, 1, 1, 2)) == ""


def test_what_follows_damage_is_told_with_the_damage_until_a_snapshot_makes_up_for_it() -> None:
    one = replace(copy(1, *[1] * 9, voters=1), damaged=((2, 5),))
    assert sentence(one) == (
        "4 of 9 records of the metadata log are skipped: they follow offsets 2 to 4, damaged in every copy;"
        " also give the copy of another node, or run again after the cluster has made a snapshot"
    )
    assert sentence(replace(one, snapshots=((7, 1),))) == ""


def test_a_damaged_copy_is_named_if_another_one_made_up_for_it() -> None:
    copies = [
        replace(copy(1, *[1] * 9), damaged=((2, 3), (4, 6))),
        replace(copy(2, *[1] * 9), damaged=((5, 6),)),
        copy(3, 1, 1, 1),
    ]
    (told,) = damaged_copies(copies, verdicts(copies))
    assert told.sentence() == "node1 is damaged: offset 2 cannot be read there, and is read from another copy"
    copies[2] = copy(3, *[1] * 9)
    assert [each[1:] for each in damaged_copies(copies, verdicts(copies))] == [(2, 3), (4, 6), (5, 6)]


@pytest.mark.parametrize(("nodes", "records"), [((1,), 20), ((1, 2, 4), 20)])
def test_of_a_real_cluster(tmp_path: Path, nodes: tuple[int, ...], records: int) -> None:
    logs = unpack(tmp_path)
    (log,) = observe(parse_options({"paths": str([str(logs[node]) for node in nodes]).replace("'", '"')}))
    found = log.skipped()
    assert found is not None and found.log_end == LOG_END_OF_NODE_1
    assert found.records == LOG_END_OF_NODE_1 - COMMITTED_END if len(nodes) > 1 else found.records >= records
    assert found.given == frozenset(nodes) & {1, 2, 3}
