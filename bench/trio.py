"""Three nodes that form a cluster, of barnabas or of Apache Kafka: processes of their own, with the same settings."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tools.apache_kafka import HOST, KAFKA_JVM, ApacheKafka, Barnabas, Node, free_ports, new_cluster_id

from barnabas.raft import formatting
from barnabas.wire import random_uuid

NODE_IDS = (1, 2, 3)
TIMEOUT_S = 180.0


class Trio:
    """Each node is broker and controller. The quorum is static, so that both are formatted the same way."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-trio-")
        self.settings = {
            "default.replication.factor": "3",
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "min.insync.replicas": "2",
            **settings,
        }
        ports = free_ports(6)
        self.clients = dict(zip(NODE_IDS, ports[:3], strict=True))
        controllers = dict(zip(NODE_IDS, ports[3:], strict=True))
        voters = ",".join(f"{each}@{HOST}:{port}" for each, port in controllers.items())
        self.nodes: dict[int, Node] = {}
        for each in NODE_IDS:
            own = {
                "node.id": str(each),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{HOST}:{self.clients[each]},CONTROLLER://{HOST}:{controllers[each]}",
            }
            node = self.make({**self.settings, **own}, Path(self._folder.name) / str(each))
            node.address = (HOST, self.clients[each])
            self.nodes[each] = node
        self.started_s = 0.0

    def make(self, settings: Mapping[str, str], folder: Path) -> Node:
        raise NotImplementedError

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.clients.values())

    def start(self) -> None:
        """Start all nodes at once, and wait until each says that all brokers are there."""
        started = time.perf_counter()
        with ThreadPoolExecutor(len(self.nodes)) as threads:  # none is ready without another
            list(threads.map(lambda node: node.start(TIMEOUT_S), self.nodes.values()))
        for each in NODE_IDS:
            admin = AdminClient({"bootstrap.servers": f"{HOST}:{self.clients[each]}"})
            wait_until(lambda admin=admin: len(admin.list_topics(timeout=TIMEOUT_S).brokers) == len(NODE_IDS))
        self.started_s = time.perf_counter() - started

    def rss_mb(self) -> float:
        return sum(node.rss_bytes() for node in self.nodes.values()) / 1e6

    def cpu_s(self) -> float:
        return sum(node.cpu_s() for node in self.nodes.values())

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def create_topic(self, name: str, partitions: int, replicas: int = 3, on: Iterable[int] | None = None) -> None:
        """Create a topic, and wait until it has leaders and all replicas are in sync."""
        admin = self.admin()
        assignment = None if on is None else [list(on)] * partitions
        new = (
            NewTopic(name, partitions, replicas)
            if assignment is None
            else NewTopic(name, partitions, replica_assignment=assignment)
        )
        admin.create_topics([new])[name].result(TIMEOUT_S)
        self.wait_in_sync(name)

    def wait_in_sync(self, name: str) -> None:
        admin = self.admin()

        def is_in_sync() -> bool:
            partitions = admin.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions
            return bool(partitions) and all(
                each.leader >= 0 and len(each.isrs) == len(each.replicas) for each in partitions.values()
            )

        wait_until(is_in_sync)

    def leader(self, name: str) -> int:
        return int(self.admin().list_topics(name, timeout=TIMEOUT_S).topics[name].partitions[0].leader)

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()
            node.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class OurTrio(Trio):
    """Three nodes of barnabas."""

    def make(self, settings: Mapping[str, str], folder: Path) -> Node:
        return Barnabas({"process.roles": "broker,controller", **settings}, directory=folder)

    def start(self) -> None:
        cluster_id = str(random_uuid(random.Random()))
        bootstrap = formatting.bootstrap_records(formatting.effective_features())
        for each, node in self.nodes.items():
            assert isinstance(node, Barnabas)
            data = node.directory / "data"
            if not data.exists():
                wanted = formatting.Formatting(
                    cluster_id, each, data, {data: random_uuid(random.Random())}, bootstrap, None
                )
                formatting.write_format(wanted, lambda: time.time_ns() // 1_000_000)
        super().start()


class TheirTrio(Trio):
    """Three nodes of Apache Kafka, with the JVM settings of its own scripts. Formatting is not counted."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._cluster_id = new_cluster_id()
        super().__init__(settings)

    def make(self, settings: Mapping[str, str], folder: Path) -> Node:
        return ApacheKafka(settings, cluster_id=self._cluster_id, jvm=KAFKA_JVM, directory=folder)

    def start(self) -> None:
        for node in self.nodes.values():
            assert isinstance(node, ApacheKafka)
            lines = (f"{name}={value}\n" for name, value in node.properties.items())
            (node.directory / "server.properties").write_text("".join(lines))
            node.format()
        super().start()


def wait_until(condition: object, pause_s: float = 0.01) -> None:
    assert callable(condition)
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("the cluster has not become ready in time")
        time.sleep(pause_s)
