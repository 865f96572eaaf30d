"""A cluster of nodes of Apache Kafka and of barnabas, in any mix, and the comparison of what they have on disk.

The nodes are processes of a local cluster, as `barnabas cluster up --apache` starts them. What is compared is the bytes of the
logs, and the images: of each node's metadata log, and of the snapshots that each node wrote of its own image.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Self
from unittest.mock import patch

from tools.apache_kafka import write_home

from barnabas.metadata.as_of import AsOf
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import to_records
from barnabas.metadata.versions import LATEST_VERSION, MetadataVersion
from barnabas.offline.metadata import load
from barnabas.operations.local_cluster import apache, processes
from barnabas.operations.local_cluster.directory import LocalCluster, added, create
from barnabas.operations.local_cluster.layout import CLIENTS, CONTROLLER, LocalNode
from barnabas.raft import formatting
from barnabas.raft.formatting import bootstrap_records, effective_features
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.storage.loading import segment_offsets
from barnabas.storage.snapshots import SnapshotId, SnapshotReader, list_snapshots, snapshot_path
from barnabas.testing import Security
from barnabas.wire import DecodedRecord, decode_record
from tests.crash.clients import wait_until

METADATA = "__cluster_metadata-0"
# Sessions are short, because nodes are killed, but a JVM on a busy machine is slow to come.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "6000",
    "controller.quorum.election.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
}
START_S = 240.0
FIRST_VERSION = MetadataVersion.IBP_4_1_IV1  # of clusters whose features are upgraded


class Mix:
    """A mixed cluster. `nodes` says of each id what it is: "barnabas" or "apache", and its roles.

    with Mix(tmp_path, {1: "barnabas broker,controller", 2: "apache broker"}) as mix: ...
    """

    def __init__(
        self,
        directory: Path,
        nodes: Mapping[int, str],
        settings: Mapping[str, str] | None = None,
        *,
        is_static: bool = False,
        version: MetadataVersion = LATEST_VERSION,
        security: Security | None = None,
    ) -> None:
        self.home = directory / "kafka"
        if not self.home.exists():
            write_home(self.home, jvm=("-Xmx256M", "-Xms64M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
        self.clients = CLIENTS if security is None else security.protocol
        made = [_node(node_id, text)._replace(clients=self.clients) for node_id, text in nodes.items()]
        self.random = Random()
        self._processes: list[subprocess.Popen[bytes]] = []
        if security is not None:
            own = security.server_settings(("127.0.0.1", "localhost"), is_authorizing=True, has_others=True)
            settings = {**own, **(settings or {})}
        users = [] if security is None else security.scram_records()
        with (
            patch.object(formatting, "effective_features", lambda: effective_features(version)),
            patch.object(formatting, "bootstrap_records", lambda features, more: bootstrap_records(features, users)),
        ):
            self.local: LocalCluster = create(
                directory / "cluster",
                made,
                (),
                {**SETTINGS, **(settings or {})},
                _now_ms,
                self.random,
                kafka_home=self.home,
                is_static=is_static,
            )

    # --- processes

    def start(self, *node_ids: int) -> None:
        """Start these nodes, or all, at once: none is ready before there is a leader."""
        started = {each: processes.start(self.local, each) for each in node_ids or self.local.nodes}
        self._processes += started.values()
        # A listener with TLS or a login does not say by an answer that the node has started.
        is_open = self.clients == CLIENTS
        with patch.object(apache, "answers", apache.answers if is_open else self._has_started):
            processes.wait_ready(self.local, started)

    def _has_started(self, node: LocalNode) -> bool:
        lines = self.log(node.node_id).splitlines()
        began = max((at for at, line in enumerate(lines) if "starting (kafka.server" in line.lower()), default=0)
        return any("Kafka Server started" in line for line in lines[began:])

    def stop(self, *node_ids: int) -> None:
        """Stop these nodes, or all, cleanly."""
        killed = processes.stop(self.local, node_ids or list(self.local.nodes))
        assert not killed, f"the nodes {killed} did not stop:\n{self.log_tail(killed[0])}"

    def kill(self, *node_ids: int) -> None:
        for each in node_ids:
            pid = processes.send(self.local, each, signal.SIGKILL)
            processes.wait_stopped(self.local, each, pid)

    def add(self, node_id: int, text: str) -> LocalNode:
        """Add a node that joins the cluster, and start it."""
        wanted = _node(node_id, text)
        home = self.home if wanted.is_apache else None
        self.local, made = added(
            self.local, node_id, _now_ms, self.random, kafka_home=home, is_controller=wanted.is_controller
        )
        self.start(node_id)
        return made

    def is_running(self, node_id: int) -> bool:
        return processes.pid_of(self.local, node_id) is not None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        for each in self.local.nodes:
            with contextlib.suppress(Exception):
                self.kill(each)
        for process in self._processes:
            process.wait()

    # --- addresses

    @property
    def bootstrap(self) -> str:
        return ",".join(self.at(each) for each in self.broker_ids)

    @property
    def controllers(self) -> str:
        return self.local.bootstrap_controllers

    def at(self, node_id: int, listener: str | None = None) -> str:
        return self.local.node(node_id).address(listener or self.clients)

    def controller_at(self, node_id: int) -> str:
        return self.at(node_id, CONTROLLER)

    @property
    def broker_ids(self) -> list[int]:
        return [each.node_id for each in self.local.nodes.values() if each.is_broker]

    # --- what they said

    def log(self, node_id: int) -> str:
        return self.local.log_file(node_id).read_text(errors="replace")

    def log_tail(self, node_id: int) -> str:
        return "\n".join(self.log(node_id).splitlines()[-25:])

    def complaints(self) -> list[str]:
        """Errors in the logs of all nodes that no kill or stop of another node explains."""
        found = []
        for node_id, node in self.local.nodes.items():
            lines = self.log(node_id).splitlines()
            for line, following in zip(lines, [*lines[1:], ""], strict=True):
                is_error = " ERROR " in line if node.is_apache else "Traceback" in line or " CRITICAL " in line
                if is_error and not any(each in line or each in following for each in EXPECTED_ERRORS):
                    found.append(f"node {node_id}: {line} {following}")
        return found

    # --- what they have on disk

    def log_bytes(self, node_id: int, partition: str) -> tuple[int, bytes]:
        """Return the first offset of a log and the bytes of all its segments, wherever it was rolled."""
        directory = self.local.log_dir(node_id) / partition
        offsets = segment_offsets(directory) if directory.is_dir() else []
        data = b"".join((directory / f"{each:020}.log").read_bytes() for each in offsets)
        return (offsets[0] if offsets else -1), data

    def assert_replicas_equal(self, replicas: Mapping[str, Iterable[int]]) -> None:
        """Wait until all replicas of each partition are the same bytes. Partitions are written `topic-0`."""
        for partition, node_ids in replicas.items():
            ids = list(node_ids)

            def is_equal(partition: str = partition, ids: list[int] = ids) -> bool:
                found = {self.log_bytes(each, partition) for each in ids}
                return len(found) == 1 and (-1, b"") not in found

            wait_until(
                is_equal, f"the replicas {ids} of {partition} are not the same: {self._sizes(partition, ids)}", 60
            )

    def _sizes(self, partition: str, node_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        return {each: (first, len(data)) for each in node_ids for first, data in [self.log_bytes(each, partition)]}

    def assert_metadata_equal(self) -> MetadataImage:
        """All nodes must have stopped. Compare the metadata logs, their images, and all snapshots with replayed images."""
        images: dict[int, MetadataImage] = {}
        logs: dict[int, dict[int, bytes]] = {}
        for node_id in self.local.nodes:
            directory = metadata_log_directory(self.local.log_dir(node_id))
            found = load(directory)
            assert found.problem is None, f"node {node_id}: {found.problem}"
            images[node_id] = found.image
            logs[node_id] = dict(_batches(directory))
        longest = max(images, key=lambda each: images[each].offset)
        for node_id, image in images.items():
            for offset, batch in logs[node_id].items():
                assert logs[longest].get(offset, batch) == batch, f"nodes {node_id} and {longest} differ at {offset}"
            other = metadata_log_directory(self.local.log_dir(longest))
            expected = images[longest]
            if image.offset < expected.offset:
                expected = load(other, AsOf(offset=image.offset)).image
            assert _facts(image) == _facts(expected), f"the images of {node_id} and {longest} differ"
        self._compare_snapshots()
        return images[longest]

    def _compare_snapshots(self) -> None:
        """The same snapshot of several nodes has the same records: each wrote it from its own image."""
        found: dict[SnapshotId, dict[int, list[str]]] = {}
        for node_id in self.local.nodes:
            directory = metadata_log_directory(self.local.log_dir(node_id))
            for snapshot_id in list_snapshots(directory):
                with SnapshotReader(snapshot_path(directory, snapshot_id)) as reader:
                    records = sorted(_text(decode_record(value)) for value in reader.values())
                    found.setdefault(snapshot_id, {})[node_id] = records
        for snapshot_id, by_node in found.items():
            first = next(iter(by_node.values()))
            for node_id, records in by_node.items():
                different = set(first) ^ set(records)
                assert not different, f"{snapshot_id} of node {node_id} and of {next(iter(by_node))}: {different}"


EXPECTED_ERRORS = (
    "to exist, but it was missing. Creating...",  # what Kafka says of a replica that was reassigned to it
    # Of a controller that was elected, but has not taken over yet; brokers send the heartbeat again.
    "NotControllerException: The active controller appears to be node",
    "because the partition is not online or is no longer the leader",  # of a coordinator that moves while it loads
    "processExpiredBrokerHeartbeat",  # of a broker that was killed
    # Of batches that Apache Kafka refuses, in the line after the error: the sender is told, and what it sent is checked.
    "TransactionCoordinatorFencedException",  # a marker of a coordinator whose partition has moved to another broker
    "InvalidProducerEpochException",  # records of a producer that was replaced
    "OutOfOrderSequenceException",  # records of a producer that sends again after a kill
)


def _node(node_id: int, text: str) -> LocalNode:
    program, roles = text.split()
    assert program in ("barnabas", "apache"), text
    assert set(roles.split(",")) <= {"broker", "controller"}, text
    return LocalNode(node_id, "broker" in roles, "controller" in roles, {}, None, program == "apache")


def _text(decoded: DecodedRecord) -> str:
    """A record as text, with the features of a registration by name: Kafka writes them in the order of a hash map."""
    features = getattr(decoded.record, "features", None)
    if features:
        features.sort(key=lambda each: each.name)
    return str(decoded)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _batches(directory: Path) -> Iterator[tuple[int, bytes]]:
    from barnabas.storage.offline import OfflineBatch, read_partition

    for item in read_partition(directory, 0):
        if isinstance(item, OfflineBatch):
            yield item.header.base_offset, bytes(item.data)


def _facts(image: MetadataImage) -> list[Any]:
    return sorted(f"{record!r} {version}" for record, version in to_records(image))


def at_once(*works: Any) -> None:
    """Run functions in threads, and raise the first error."""
    with ThreadPoolExecutor(len(works)) as pool:
        for each in [pool.submit(work) for work in works]:
            each.result()
