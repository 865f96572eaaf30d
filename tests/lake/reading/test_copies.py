"""What is committed, from copies of a log: against a real cluster, and against histories of a small Raft."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.lake.reading.copies import CommitVerdict, Copy, common_end, epoch_of, merge, verdicts, voters_of
from barnabas.lake.reading.metadata_files import find_logs
from barnabas.lake.reading.metadata_scan import inspect
from tests.lake.metadata_golden import COMMITTED_END, LOG_END_OF_NODE_1, unpack


def copy(
    node_id: int, *epochs: int, start: int = 0, snapshots: tuple[tuple[int, int], ...] = (), voters: int = 3
) -> Copy:
    """A log with one record for each of these epochs, from an offset on."""
    lineage = tuple((epoch, start + at) for at, epoch in enumerate(epochs) if at == 0 or epochs[at - 1] != epoch)
    return Copy(
        f"node{node_id}",
        node_id,
        lineage,
        start,
        start + len(epochs),
        snapshots,
        frozenset(range(1, voters + 1)),
        (1, 0),
    )


def of(copies: list[Copy], node_id: int) -> list[bool | None]:
    one = next(each for each in copies if each.node_id == node_id)
    return [verdicts(copies)[one.name].of(offset) for offset in range(one.log_start, one.log_end)]


# Rules, one by one


def test_what_a_majority_has_is_committed_and_the_rest_unknown() -> None:
    copies = [copy(1, 1, 1, 1, 1), copy(2, 1, 1)]
    assert of(copies, 1) == [True, True, None, None]
    assert of(copies, 2) == [True, True]


def test_one_copy_of_three_says_nothing_but_by_its_snapshots() -> None:
    assert of([copy(1, 1, 1, 1)], 1) == [None, None, None]
    assert of([copy(1, 1, 1, 1, snapshots=((2, 1),))], 1) == [True, True, None]


def test_a_single_voter_has_committed_all_of_its_log() -> None:
    assert of([copy(1, 1, 1, 2, voters=1)], 1) == [True, True, True]


def test_an_observer_does_not_count() -> None:
    assert of([copy(1, 1, 1), copy(4, 1, 1)], 1) == [None, None]


def test_a_tail_that_lost_to_another_epoch_is_false() -> None:
    copies = [copy(1, 1, 1, 1, 1), copy(2, 1, 1, 2, 2, 2), copy(3, 1, 1, 2, 2, 2)]
    assert of(copies, 1) == [True, True, False, False]
    assert of(copies, 2) == [True] * 5


def test_a_tail_that_goes_on_behind_the_end_of_what_won_is_false_as_well() -> None:
    copies = [copy(1, 1, 1, 1, 1, 1, 1), copy(2, 1, 1, 2), copy(3, 1, 1, 2)]
    assert of(copies, 1) == [True, True, False, False, False, False]


def test_a_record_on_a_majority_is_not_committed_if_a_later_leader_was_without_it() -> None:
    # Node 3 led epoch 3 with the votes of 2; node 1 then hands its old record to 2, but has nothing of epoch 4 on both.
    copies = [copy(1, 1, 2, 4), copy(2, 1, 2), copy(3, 1, 3)]
    assert of(copies, 1) == [True, None, None]
    # The same if node 3 is not at hand: of epoch 3 nobody knows what its leader had.
    assert of(copies[:2], 1) == [None, None, None]


def test_voters_can_be_given() -> None:
    copies = [copy(1, 1, 1), copy(2, 1, 1)]
    assert verdicts(copies, {1, 2, 3, 4, 5})["node1"] == CommitVerdict(0)
    assert verdicts(copies, {1})["node1"] == CommitVerdict(2)


def test_the_latest_word_on_voters_counts() -> None:
    old = Copy("a", 1, ((1, 0),), 0, 9, (), frozenset({1, 2, 3}), (1, 0))
    new = Copy("b", 2, ((1, 0),), 0, 9, (), frozenset({2}), (1, 5))
    assert voters_of([old, new]) == voters_of([new, old]) == {2}


def test_copies_that_have_no_offset_in_common_meet_at_a_snapshot() -> None:
    early = copy(1, 1, 1, 1)
    late = copy(2, 2, 2, start=3, snapshots=((3, 1),))
    assert common_end(early, late) == 3
    assert of([early, late], 1) == [True] * 3


# Plans


def test_a_plan_reads_each_offset_once_from_copies_that_have_it() -> None:
    copies = [copy(1, 1, 1, 1, 1), copy(2, 1, 2, 2, 2, start=3, snapshots=((5, 2),)), copy(3, 1, 2, start=3)]
    plan = merge(copies, verdicts(copies))
    assert [(read.name, read.start, read.end) for read in plan.reads] == [("node1", 0, 4), ("node3", 4, 5)]
    assert (plan.end, plan.epoch) == (5, 2)


def test_a_plan_begins_with_the_earliest_snapshot_behind_which_a_log_goes_on() -> None:
    only = copy(1, 2, 2, 2, 2, start=4, snapshots=((5, 2), (7, 2)), voters=1)
    reads = merge([only], verdicts([only])).reads
    assert [(read.start, read.end, read.snapshot) for read in reads] == [(0, 5, (5, 2)), (5, 8, None)]
    assert [read.snapshot for read in merge([only], verdicts([only]), 6).reads] == [None]


def test_a_snapshot_is_all_there_is() -> None:
    only = Copy("a", 1, (), 9, 9, ((9, 3),), frozenset({1}))
    plan = merge([only], verdicts([only]))
    assert [read.snapshot for read in plan.reads] == [(9, 3)]
    assert (plan.end, plan.epoch) == (9, 3)


def test_damaged_offsets_are_read_from_another_copy() -> None:
    copies = [
        replace(copy(1, 1, 1, 1, 1, 1, 1), damaged=((1, 2), (4, 5))),
        replace(copy(2, 1, 1, 1, 1, 1, 1), damaged=((2, 4),)),
    ]
    plan = merge(copies, verdicts(copies))
    assert [(read.name, read.start, read.end, read.is_damaged) for read in plan.reads] == [
        ("node2", 0, 2, False), ("node1", 2, 4, False), ("node2", 4, 6, False),
    ]  # fmt: skip


def test_after_offsets_that_every_copy_has_damaged_a_plan_goes_on_at_the_next_snapshot() -> None:
    copies = [
        replace(copy(1, *[1] * 9, snapshots=((3, 1), (6, 1)), voters=1), damaged=((2, 5),)),
        replace(copy(2, *[1] * 9), damaged=((1, 4),)),
    ]
    plan = merge(copies, verdicts(copies))
    assert [(read.start, read.end, read.snapshot, read.is_damaged) for read in plan.reads] == [
        (0, 2, None, False), (2, 4, None, True), (4, 6, (6, 1), False), (6, 9, None, False),
    ]  # fmt: skip
    assert [read.start for read in merge(copies, verdicts(copies), 7).reads] == [7]


def test_without_a_later_snapshot_a_plan_ends_with_the_damage_and_goes_on_when_there_is_one() -> None:
    one = replace(copy(1, *[1] * 9, snapshots=((2, 1),), voters=1), damaged=((2, 5),))
    plan = merge([one], verdicts([one]))
    assert [(read.start, read.end, read.is_damaged) for read in plan.reads] == [(0, 2, False), (2, 5, True)]
    assert plan.end == 5
    assert merge([one], verdicts([one]), 5).reads == ()
    for end in (5, 8):
        later = replace(one, snapshots=((2, 1), (end, 1)))
        reads = merge([later], verdicts([later]), 5).reads
        assert [(read.start, read.end, read.snapshot) for read in reads] == [(5, end, (end, 1)), (end, 9, None)]


def test_on_request_the_best_log_is_read_to_its_end() -> None:
    copies = [copy(1, 1, 1, 1, 1), copy(2, 1, 1)]
    assert merge(copies, verdicts(copies)).end == 2
    plan = merge(copies, verdicts(copies), uncommitted=True)
    assert (plan.end, [read.name for read in plan.reads]) == (4, ["node1"])


# A real cluster


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Copy]:
    paths = unpack(tmp_path_factory.mktemp("golden"))
    return {log.node_id or 0: inspect(log)[0] for log in find_logs(paths.values())}


def test_the_tail_that_node_1_wrote_without_a_quorum_is_not_committed(golden: dict[int, Copy]) -> None:
    found = verdicts(list(golden.values()))
    assert voters_of(golden.values()) == {1, 2, 3}
    assert golden[1].log_end == LOG_END_OF_NODE_1
    verdict = found[golden[1].name]
    assert all(verdict.of(offset) for offset in range(COMMITTED_END))
    assert not any(verdict.of(offset) for offset in range(COMMITTED_END, LOG_END_OF_NODE_1))
    assert merge(list(golden.values()), found).end == COMMITTED_END
    assert epoch_of(list(golden.values()), found, COMMITTED_END - 1) == 6


def test_of_node_1_alone_only_its_snapshots_are_certain(golden: dict[int, Copy]) -> None:
    assert merge([golden[1]], verdicts([golden[1]])).end == 3603


def test_a_copy_without_its_checkpoint_of_epochs_is_the_same(tmp_path: Path, golden: dict[int, Copy]) -> None:
    paths = unpack(tmp_path)
    (paths[1] / "__cluster_metadata-0" / "leader-epoch-checkpoint").unlink()
    (log,) = find_logs([paths[1]])
    assert inspect(log)[0].lineage == golden[1].lineage


# A small Raft


@dataclass
class Node:
    log: list[int] = field(default_factory=list)
    """The epoch of each record."""
    term: int = 0
    snapshots: list[tuple[int, int]] = field(default_factory=list)
    start: int = 0
    known_committed: int = 0


class Cluster:
    """Elections, replication and commits as Raft has them, one step at a time, in an order that chance decides."""

    def __init__(self, count: int, random: Random) -> None:
        self.nodes = {node_id: Node() for node_id in range(1, count + 1)}
        self.random = random
        self.leader: int | None = None
        self.committed: list[int] = []

    def step(self) -> None:
        self.random.choice(
            [self.elect, self.append, self.replicate, self.replicate, self.replicate, self.commit, self.snapshot]
        )()

    def elect(self) -> None:
        candidate_id = self.random.choice(list(self.nodes))
        candidate = self.nodes[candidate_id]
        candidate.term += 1
        last = (candidate.log[-1] if candidate.log else 0, len(candidate.log))
        votes = 1
        for node_id, node in self.nodes.items():
            if node_id == candidate_id or self.random.random() < 0.3 or node.term >= candidate.term:
                continue
            node.term = candidate.term
            votes += (node.log[-1] if node.log else 0, len(node.log)) <= last
        if votes > len(self.nodes) // 2:
            self.leader = candidate_id
            candidate.log.append(candidate.term)
        elif self.leader is not None and self.leader == candidate_id:
            self.leader = None

    def leading(self) -> Node | None:
        node = self.nodes[self.leader] if self.leader is not None else None
        return node if node is not None and node.log and node.log[-1] == node.term else None

    def append(self) -> None:
        if (leader := self.leading()) is not None:
            leader.log.append(leader.term)

    def replicate(self, whole: bool = False) -> None:
        leader = self.leading()
        follower = self.nodes[self.random.choice(list(self.nodes))]
        if leader is None or follower is leader or follower.term > leader.term:
            return
        follower.term = leader.term
        same = 0
        while same < min(len(leader.log), len(follower.log)) and leader.log[same] == follower.log[same]:
            same += 1
        del follower.log[same:]
        count = len(leader.log) if whole else same + self.random.randint(0, 2)
        follower.log += leader.log[same:count]
        follower.known_committed = max(follower.known_committed, min(leader.known_committed, len(follower.log)))

    def commit(self) -> None:
        leader = self.leading()
        if leader is None:
            return
        ends = []
        for node in self.nodes.values():
            same = 0
            while same < min(len(leader.log), len(node.log)) and leader.log[same] == node.log[same]:
                same += 1
            ends.append(same if node.term == leader.term else 0)
        end = sorted(ends, reverse=True)[len(self.nodes) // 2]
        if end > leader.known_committed and leader.log[end - 1] == leader.term:
            leader.known_committed = end
            assert leader.log[: len(self.committed)] == self.committed[:end] or len(self.committed) > end
            if end > len(self.committed):
                self.committed = leader.log[:end]

    def snapshot(self) -> None:
        node = self.random.choice(list(self.nodes.values()))
        if self.random.random() < 0.2 and node.known_committed > 0:
            end = self.random.randint(1, node.known_committed)
            node.snapshots = [*node.snapshots, (end, node.log[end - 1])]
            if self.random.random() < 0.5:
                node.start = max(node.start, self.random.randint(0, end))

    def settle(self) -> list[int]:
        """Whoever leads in the end, what it commits is the truth."""
        while True:
            self.elect()
            for _ in range(40):
                self.replicate(whole=True)
            self.commit()
            leader = self.leading()
            if leader is not None and leader.known_committed == len(leader.log):
                return leader.log

    def copy(self, node_id: int) -> Copy:
        node = self.nodes[node_id]
        start = min(node.start, len(node.log))
        lineage = tuple(
            (epoch, at)
            for at, epoch in enumerate(node.log)
            if at == start or (at > start and node.log[at - 1] != epoch)
        )
        voters = frozenset(self.nodes)
        return Copy(
            f"node{node_id}", node_id, lineage, start, len(node.log), tuple(sorted(set(node.snapshots))), voters
        )


@given(seed=st.integers(0, 2**32), count=st.sampled_from([1, 2, 3, 3, 5]), steps=st.integers(0, 120))
@settings(max_examples=400, deadline=None)
def test_what_is_said_of_any_history_comes_true(seed: int, count: int, steps: int) -> None:
    random = Random(seed)
    cluster = Cluster(count, random)
    for _ in range(steps):
        cluster.step()
    chosen = random.sample(sorted(cluster.nodes), random.randint(1, count))
    copies = [cluster.copy(node_id) for node_id in chosen]
    logs = {f"node{node_id}": list(cluster.nodes[node_id].log) for node_id in chosen}
    found = verdicts(copies)
    plan = merge(copies, found)
    for _ in range(random.randint(0, 60)):
        cluster.step()
    truth = cluster.settle()
    for each in copies:
        for offset in range(each.log_start, each.log_end):
            verdict = found[each.name].of(offset)
            if verdict is not None:
                assert verdict is (offset < len(truth) and truth[offset] == logs[each.name][offset])
    at = 0
    for read in plan.reads:
        assert read.start == at or read.snapshot is None or at == 0
        if read.snapshot is not None:
            assert truth[read.end - 1] == read.snapshot[1]
        else:
            assert truth[read.start : read.end] == logs[read.name][read.start : read.end]
        at = read.end
    assert plan.end == at
    assert plan.end == 0 or truth[plan.end - 1] == plan.epoch


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 80))
@settings(max_examples=100, deadline=None)
def test_when_all_is_quiet_everything_is_known_to_be_committed(seed: int, steps: int) -> None:
    cluster = Cluster(3, Random(seed))
    for _ in range(steps):
        cluster.step()
    truth = cluster.settle()
    for _ in range(20):
        cluster.replicate(whole=True)
    copies = [cluster.copy(node_id) for node_id in cluster.nodes]
    if any(each.log_start for each in copies):
        return
    assert merge(copies, verdicts(copies)).end == len(truth)
