"""Clusters in a bad world: whatever happens, one leader in an epoch and one history; and when it ends, they go on.

Each seed is a run of its own (see simulation.py and chaos.py); what must always hold is checked at every step, by Truth.
"""

from __future__ import annotations

import pytest

from barnabas.raft.roles import Follower, Unattached
from tests.raft.chaos import Chaos
from tests.raft.simulation import Cluster, Violation, values_of

CHAOS_MS = 30_000
HEALING_MS = 20_000


def cluster_of(seed: int, voters: int, observers: int, *, dynamic: bool) -> Cluster:
    cluster = Cluster(seed)
    for node_id in range(1, voters + observers + 1):
        cluster.add(node_id, voters=range(1, voters + 1), dynamic=dynamic)
    return cluster


def survives(cluster: Cluster, *, voter_changes: bool = False) -> None:
    chaos = Chaos(cluster, voter_changes=voter_changes)
    chaos.run(CHAOS_MS)
    cluster.check_logs()
    chaos.end()
    assert cluster.run(HEALING_MS, cluster.has_caught_up), "no progress after healing"
    before = cluster.truth.committed_offset
    assert cluster.leader().propose([b"the last one"]) == before
    assert cluster.run(HEALING_MS, lambda: cluster.has_caught_up() and cluster.truth.committed_offset > before)
    cluster.check_logs()
    assert len({node.state for node in cluster.nodes.values()}) == 1


@pytest.mark.parametrize("seed", range(8))
def test_one_voter_and_observers(seed: int) -> None:
    survives(cluster_of(seed, 1, 2, dynamic=seed % 2 == 0))


@pytest.mark.parametrize("seed", range(24))
def test_three_voters_and_an_observer(seed: int) -> None:
    survives(cluster_of(seed, 3, 1, dynamic=seed % 2 == 0))


@pytest.mark.parametrize("seed", range(12))
def test_five_voters_and_an_observer(seed: int) -> None:
    survives(cluster_of(seed, 5, 1, dynamic=seed % 2 == 0))


@pytest.mark.parametrize("seed", range(20))
def test_voters_that_come_and_go(seed: int) -> None:
    survives(cluster_of(seed, 3, 2, dynamic=True), voter_changes=True)


def test_a_run_follows_from_its_seed_alone() -> None:
    def run() -> tuple[int, int, dict[int, int]]:
        cluster = cluster_of(7, 3, 1, dynamic=True)
        Chaos(cluster).run(10_000)
        return cluster.events, cluster.truth.committed_offset, cluster.truth.leaders

    assert run() == run()


def test_in_good_weather_one_election_is_enough() -> None:
    cluster = cluster_of(1, 3, 1, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    leader = cluster.leader()
    for number in range(200):
        leader.propose([b"%d" % number])
        cluster.run(20)
    cluster.run(60_000)
    assert cluster.truth.leaders == {1: leader.id}
    assert values_of(cluster.nodes[4].log) == [b"%d" % number for number in range(200)]


def test_a_leader_that_dies_is_followed_by_another_within_seconds() -> None:
    cluster = cluster_of(2, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    first = cluster.leader()
    first.propose([b"kept"])
    cluster.run(100)
    first.crash()
    assert cluster.run(8000, lambda: bool(cluster.leaders()) and cluster.has_caught_up())
    assert cluster.leader().id != first.id
    assert values_of(cluster.leader().log) == [b"kept"]


def test_a_leader_that_leaves_hands_over_at_once() -> None:
    cluster = cluster_of(3, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    first = cluster.leader()
    assert first.core is not None
    first.core.shutdown(first.now_ms, 5000)
    first.process()
    assert cluster.run(1500, lambda: any(node is not first for node in cluster.leaders()))
    cluster.run(100)
    assert first.core.is_shut_down(first.now_ms), "it has heard of the new leader"


def test_who_was_cut_off_does_not_disturb_the_others_when_it_comes_back() -> None:
    cluster = cluster_of(4, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    leader = cluster.leader()
    lonely = next(node for node in cluster.nodes.values() if node is not leader)
    others = set(cluster.nodes) - {lonely.id}
    cluster.faults.blocked = {(lonely.id, each) for each in others} | {(each, lonely.id) for each in others}
    cluster.run(60_000)
    assert lonely.core is not None
    assert isinstance(lonely.core.role, Unattached | Follower) or lonely.core.epoch == 1
    cluster.faults.blocked = set()
    assert cluster.run(5000, cluster.has_caught_up)
    assert cluster.truth.leaders == {1: leader.id}, "the pre-vote kept its epoch from rising"


def test_who_cannot_reach_the_others_gives_up_the_lead() -> None:
    cluster = cluster_of(5, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    leader = cluster.leader()
    cluster.faults.blocked = {(each, leader.id) for each in cluster.nodes}
    assert cluster.run(10_000, lambda: leader not in cluster.leaders())


def test_the_simulation_sees_two_leaders() -> None:
    cluster = cluster_of(6, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    impostor = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    with pytest.raises(Violation, match="both lead epoch 1"):
        cluster.truth.elected(impostor, 1)


def test_the_simulation_sees_another_history() -> None:
    cluster = cluster_of(6, 3, 0, dynamic=True)
    assert cluster.run(5000, cluster.has_caught_up)
    node = cluster.leader()
    with pytest.raises(Violation, match="something else"):
        cluster.truth.applied(node, 0, cluster.truth.committed_offset, 1, b"another state")
