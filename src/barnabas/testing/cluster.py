"""A cluster of whole nodes in this process, in the caller's event loop (`AsyncCluster`) or in a thread (`Cluster`).

Its one rule: the nodes know each other only through Kafka's protocol, over real sockets. Each is broker and controller, with
its own log dir. A node can be stopped, dropped as if its process had died, and started again on the same ports.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.broker.node import Node, NodeError
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.client.loop_thread import LoopThread
from barnabas.config.endpoints import address_text
from barnabas.config.server import EMBEDDED_DEFAULTS, load
from barnabas.config.server_config import ServerConfig
from barnabas.config.values import ConfigError
from barnabas.raft import formatting
from barnabas.testing.embedded import START_TIMEOUT_S, BrokerError, be_quiet, stop_node
from barnabas.testing.settings import TEST_DEFAULTS, Setting, setting_texts, topic_partitions
from barnabas.wire import ErrorCode, KafkaError, Uuid, random_uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

T = TypeVar("T")

HOST = "127.0.0.1"
CLIENTS, CONTROLLER = "PLAINTEXT", "CONTROLLER"
CREATE_TOPICS_VERSION = 7
CALL_TIMEOUT_S = 60.0
LOOK_AGAIN_S = 0.01

CLUSTER_DEFAULTS = {
    # Elections within a tenth of a second: nothing but this process is slow here.
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "100",
    # A node that was killed cannot register again before its session ends.
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "3000",
}


class AsyncCluster:
    """A cluster in the caller's event loop: `async with AsyncCluster(3) as cluster`. Node ids count from 1."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, Setting] | None = None,
        data_dir: Path | str | None = None,
        racks: Sequence[str] = (),
        surroundings: Surroundings = REAL_WORLD,
    ) -> None:
        """Configure a cluster.

        `topics` exist when the cluster is ready, with as many replicas as `default.replication.factor`. `config` is for every
        node. `data_dir` has a directory for each node and is kept; without it, a temporary one is used and removed. The
        nodes are in `racks` in turn.
        """
        if nodes < 1:
            raise BrokerError(f"a cluster has at least one node, not {nodes}")
        self.node_ids = tuple(range(1, nodes + 1))
        self.nodes: dict[int, Node] = {}
        self.cluster_id = ""
        self._topics = topic_partitions(topics)
        self._settings = setting_texts(config or {})
        self._racks = tuple(racks)
        self._surroundings = surroundings
        self._kept_dir = None if data_dir is None else Path(data_dir).absolute()
        self._directory: Path | None = None
        self._ports: dict[tuple[int, str], int] = {}
        self._reserved: dict[int, socket.socket] = {}

    # --- properties

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, running or not."""
        return ",".join(self.address(node_id) for node_id in self.node_ids)

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(self.address(node_id, CONTROLLER) for node_id in self.node_ids)

    def address(self, node_id: int, listener_name: str = CLIENTS) -> str:
        """`host:port` of a node."""
        return address_text(HOST, self._ports[node_id, listener_name])

    @property
    def active_controller(self) -> int | None:
        """The id of the node whose controller is active, or None during an election."""
        return next((key for key, node in self.nodes.items() if node.is_active_controller), None)

    def data_dir(self, node_id: int) -> Path:
        assert self._directory is not None, "the cluster was not started"
        return self._directory / f"node-{node_id}"

    # --- start and stop

    async def start(self) -> Self:
        """Start all nodes. Returns when each of them serves clients and the topics exist."""
        be_quiet()
        is_first = not self._ports
        if is_first:
            self._directory = self._kept_dir or Path(tempfile.mkdtemp(prefix="barnabas-"))
            self._reserve_ports()
            self._format()
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._all(self.start_node(node_id) for node_id in self.node_ids if node_id not in self.nodes)
                if is_first:
                    for name, partitions in self._topics.items():
                        await self.create_topic(name, partitions)
        except TimeoutError as error:
            await self.close()
            raise BrokerError(f"the cluster was not ready within {START_TIMEOUT_S:g} s") from error
        except BaseException:
            await self.close()
            raise
        return self

    async def start_node(self, node_id: int) -> Node:
        """Start a node on its ports and data. Returns when it serves clients."""
        if node_id in self.nodes:
            raise BrokerError(f"node {node_id} is already running")
        node = Node(self._config(node_id), replace(self._surroundings, listen=self._listen))
        self.nodes[node_id] = node
        try:
            await node.start()
        except BaseException as error:
            if self.nodes.get(node_id) is node:
                del self.nodes[node_id]
                await stop_node(node)
            if isinstance(error, NodeError | OSError) and not isinstance(error, TimeoutError):
                raise BrokerError(f"node {node_id}: {error}") from error
            raise
        return node

    async def stop_node(self, node_id: int) -> None:
        """Stop a node cleanly: it hands over what it leads first."""
        await stop_node(self._running(node_id))

    async def kill(self, node_id: int) -> None:
        """Drop a node as if its process had died. Its data is as the process left it."""
        node = self._running(node_id)
        await node.drop()
        node.failed.cancel()

    async def stop(self) -> None:
        """Stop all nodes cleanly. Data and ports are kept for the next start, until `close`."""
        nodes, self.nodes = self.nodes, {}
        await self._all(node.leave() for node in nodes.values())  # while there is a controller that allows it
        await self._all(stop_node(node, hands_over=False) for node in nodes.values())

    async def close(self) -> None:
        """Stop all nodes and remove the temporary directory."""
        try:
            await self.stop()
        finally:
            for sock in self._reserved.values():
                sock.close()
            self._reserved, self._ports = {}, {}
            if self._kept_dir is None and self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- topics and elections

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create a topic. Returns when every running node knows it. Raises `barnabas.wire.KafkaError`."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1 if partitions is None else partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in setting_texts(config or {}).items()
            ],
        )
        node = next(iter(self.nodes.values()))
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        response: CreateTopicsResponse = await node.channel.call(request, CREATE_TOPICS_VERSION)
        (row,) = response.topics
        if row.error_code:
            raise KafkaError(ErrorCode(row.error_code), row.error_message)
        while any(name not in each.image.topics.ids for each in self.nodes.values()):
            await asyncio.sleep(LOOK_AGAIN_S)

    async def wait_active_controller(self, *, other_than: int | None = None, timeout_s: float = 20.0) -> int:
        """Wait until a controller is active, other than the given one, and return its id. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while (found := self.active_controller) in (None, other_than):
                await asyncio.sleep(LOOK_AGAIN_S)
        assert found is not None
        return found

    # --- the parts

    def _running(self, node_id: int) -> Node:
        node = self.nodes.pop(node_id, None)
        if node is None:
            raise BrokerError(f"node {node_id} is not running")
        return node

    async def _all(self, work: Iterable[Coroutine[Any, Any, object]]) -> None:
        """Do all of this at once. Raises the first error after everything has ended."""
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def _reserve_ports(self) -> None:
        """Bind the ports of all nodes at once, because each must know those of the others before it starts."""
        for node_id in self.node_ids:
            for name in (CLIENTS, CONTROLLER):
                sock = self._surroundings.listen(HOST, 0)
                port = sock.getsockname()[1]
                self._ports[node_id, name] = port
                self._reserved[port] = sock

    def _listen(self, host: str, port: int) -> socket.socket:
        return self._reserved.pop(port, None) or self._surroundings.listen(host, port)

    def _config(self, node_id: int) -> ServerConfig:
        voters = ",".join(f"{each}@{self.address(each, CONTROLLER)}" for each in self.node_ids)
        factor = str(min(3, len(self.node_ids)))
        given = {
            **{name: text for name, text in EMBEDDED_DEFAULTS.items() if "replication" not in name},
            **TEST_DEFAULTS,
            **CLUSTER_DEFAULTS,
            "default.replication.factor": factor,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            **self._settings,
            "node.id": str(node_id),
            "listeners": ",".join(f"{name}://{self.address(node_id, name)}" for name in (CLIENTS, CONTROLLER)),
            "controller.quorum.voters": voters,
            "log.dirs": str(self.data_dir(node_id)),
        }
        del given["controller.quorum.bootstrap.servers"]
        if self._racks:
            given["broker.rack"] = self._racks[(node_id - 1) % len(self._racks)]
        try:
            return load(given, broker_count=len(self.node_ids))
        except ConfigError as error:
            raise BrokerError(f"config: {error}") from None

    def _format(self) -> None:
        """Format the log dirs of all nodes for one cluster, unless they are formatted."""
        random = self._surroundings.random_for("cluster")
        assert self._directory is not None
        known = self._directory / "cluster-id"
        if known.exists():
            self.cluster_id = known.read_text().strip()
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        self.cluster_id = str(random_uuid(random))
        bootstrap = formatting.bootstrap_records(formatting.effective_features())
        for node_id in self.node_ids:
            directory = self.data_dir(node_id)
            ids: dict[Path, Uuid] = {directory: random_uuid(random)}
            wanted = formatting.Formatting(self.cluster_id, node_id, directory, ids, bootstrap, None)
            formatting.write_format(wanted, self._surroundings.now_ms)
        known.write_text(f"{self.cluster_id}\n")


class Cluster:
    """A cluster in a thread of its own, for any client: `with Cluster(nodes=3) as cluster`.

    `async with Cluster(...)` returns an `AsyncCluster` instead.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, Setting] | None = None,
        data_dir: Path | str | None = None,
        racks: Sequence[str] = (),
    ) -> None:
        """Like `AsyncCluster`."""
        self._cluster = AsyncCluster(nodes, topics=topics, config=config, data_dir=data_dir, racks=racks)
        self._thread: LoopThread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, running or not."""
        return self._cluster.bootstrap_servers

    @property
    def bootstrap_controllers(self) -> str:
        return self._cluster.bootstrap_controllers

    @property
    def cluster_id(self) -> str:
        return self._cluster.cluster_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        return self._cluster.node_ids

    @property
    def active_controller(self) -> int | None:
        """The id of the node whose controller is active, or None during an election."""
        return self._cluster.active_controller

    def address(self, node_id: int, listener_name: str = CLIENTS) -> str:
        """`host:port` of a node."""
        return self._cluster.address(node_id, listener_name)

    def start(self) -> Self:
        """Start all nodes. Returns when each of them serves clients and the topics exist."""
        if self._thread is None:
            self._thread = LoopThread("barnabas-cluster")
        try:
            self._call(self._cluster.start())
        except BaseException:
            self._end_thread()
            raise
        return self

    def start_node(self, node_id: int) -> None:
        """Start a node on its ports and data. Returns when it serves clients."""
        self._call(self._cluster.start_node(node_id))

    def stop_node(self, node_id: int) -> None:
        """Stop a node cleanly: it hands over what it leads first."""
        self._call(self._cluster.stop_node(node_id))

    def kill(self, node_id: int) -> None:
        """Drop a node as if its process had died. Its data is as the process left it."""
        self._call(self._cluster.kill(node_id))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create a topic. Returns when every running node knows it. Raises `barnabas.wire.KafkaError`."""
        self._call(self._cluster.create_topic(name, partitions, replication_factor=replication_factor, config=config))

    def wait_active_controller(self, *, other_than: int | None = None, timeout_s: float = 20.0) -> int:
        """Wait until a controller is active, other than the given one, and return its id. Raises TimeoutError."""
        return self._call(self._cluster.wait_active_controller(other_than=other_than, timeout_s=timeout_s))

    def close(self) -> None:
        """Stop all nodes and remove the temporary directory."""
        if self._thread is not None:
            try:
                self._call(self._cluster.close())
            finally:
                self._end_thread()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncCluster:
        return await self._cluster.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cluster.__aexit__(kind, error, trace)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            work.close()
            raise BrokerError("the cluster is not running: use `with Cluster() as cluster:`, or call start()")
        return self._thread.call(work, CALL_TIMEOUT_S)

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close(CALL_TIMEOUT_S)
