"""Loads of brokers: counts and skew by hand, and brokers that do not run."""

from __future__ import annotations

from barnabas.client.admin.log_dirs import LogDir, StoredReplica
from barnabas.client.state import Node, Partition
from barnabas.operations.broker_loads import BrokerStatus, DirsByBroker, Disk, broker_loads
from barnabas.wire.errors import ErrorCode, KafkaError

NODES = [Node(1, "a", 1), Node(2, "b", 2), Node(3, "c", 3, is_fenced=True)]


def partition(index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> Partition:
    return Partition(index, leader, 0, replicas, isr)


def test_leaders_replicas_and_skew_are_counted_over_running_brokers() -> None:
    partitions = [
        partition(0, 1, (1, 2), (1, 2)),
        partition(1, 1, (1, 2), (1,)),
        partition(2, 1, (1, 3), (1,)),
        partition(3, -1, (9,), ()),
    ]
    one, two, three, gone = broker_loads(NODES, partitions, {})
    assert (one.leaders, one.leader_skew_percent, one.replicas, one.replica_skew_percent) == (3, 100.0, 3, 20.0)
    assert (two.leaders, two.leader_skew_percent, two.replicas, two.replica_skew_percent) == (0, -100.0, 2, -20.0)
    assert (one.under_replicated, one.out_of_sync, two.under_replicated, two.out_of_sync) == (2, 0, 0, 1)
    assert (three.status, three.replicas, three.replica_skew_percent) == (BrokerStatus.FENCED, 1, None)
    assert (gone.broker_id, gone.node, gone.status, gone.out_of_sync) == (9, None, BrokerStatus.MISSING, 1)


def test_a_cluster_without_partitions_has_no_skew() -> None:
    assert [load.leader_skew_percent for load in broker_loads(NODES, [], {})] == [None, None, None]


def test_disks_are_summed_and_what_is_not_known_is_none() -> None:
    replica = StoredReplica("t", 0, 100, 0, False)
    refused = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    dirs: DirsByBroker = {
        1: {
            "/a": LogDir("/a", None, (replica, replica), 1000, 400, False),
            "/b": LogDir("/b", None, (replica,), 500, 100, False),
        },
        2: refused,
    }
    one, two, three = broker_loads(NODES, [], dirs)
    assert one.disk == Disk(300, 500, 1500)
    assert (two.disk, two.disk_error) == (Disk(), refused)
    assert (three.disk, three.disk_error) == (Disk(), None)
