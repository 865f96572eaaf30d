"""The processes of a local cluster: in which order they are stopped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from barnabas.operations.local_cluster import processes
from barnabas.operations.local_cluster.directory import LocalCluster, create
from barnabas.operations.local_cluster.layout import LocalNode


def node(node_id: int, roles: str, *, is_apache: bool = False) -> LocalNode:
    return LocalNode(node_id, "broker" in roles, "controller" in roles, {}, None, is_apache)


def test_brokers_stop_before_controllers_and_those_of_apache_kafka_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        node(101, "controller"),
        node(1, "broker"),
        node(2, "broker"),
        node(3, "broker", is_apache=True),
        node(4, "broker", is_apache=True),
    ]
    cluster = create(tmp_path / "cluster", nodes, (), {}, lambda: 0, Random(1), kafka_home=tmp_path)
    turns: list[list[int]] = []

    def stopped(_: LocalCluster, node_ids: Iterable[int]) -> list[int]:
        turns.append(list(node_ids))
        return []

    monkeypatch.setattr(processes, "_stop_at_once", stopped)
    assert processes.stop(cluster, [101, 1, 2, 3, 4]) == []
    assert turns == [[3], [4], [1, 2], [101]]


def test_nodes_that_are_only_brokers_stop_while_all_controllers_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = "broker,controller"
    nodes = [
        node(1, both),
        node(2, both, is_apache=True),
        node(3, both, is_apache=True),
        node(4, "broker", is_apache=True),
        node(5, "broker"),
    ]
    cluster = create(tmp_path / "cluster", nodes, (), {}, lambda: 0, Random(1), kafka_home=tmp_path)
    turns: list[list[int]] = []

    def stopped(_: LocalCluster, node_ids: Iterable[int]) -> list[int]:
        turns.append(list(node_ids))
        return []

    monkeypatch.setattr(processes, "_stop_at_once", stopped)
    assert processes.stop(cluster, [1, 2, 3, 4, 5]) == []
    assert turns == [[4], [5], [2], [3], [1]]
