"""A cluster of whole nodes in this process, in the caller's event loop (`AsyncCluster`) or in a thread (`Cluster`).

Its one rule: the nodes know each other only through Kafka's protocol, over real sockets. Each has its own log dir. A node
can be stopped, dropped as if its process had died, and started again on the same ports.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.broker.node import Node, NodeError
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.client.loop_thread import LoopThread
from barnabas.client.settings import load as load_client
from barnabas.config.server import load
from barnabas.config.server_config import ServerConfig
from barnabas.config.values import ConfigError
from barnabas.operations.local_cluster.formatting import format_all
from barnabas.operations.local_cluster.layout import CLIENTS, CONTROLLER, HOST, LocalNode, nodes_of, settings_of
from barnabas.testing.embedded import START_TIMEOUT_S, BrokerError, be_quiet, stop_node
from barnabas.testing.faults import Faults
from barnabas.testing.security import Security
from barnabas.testing.settings import TEST_DEFAULTS, Setting, setting_texts, topic_partitions
from barnabas.testing.share_group import InFlight, ShareGroup
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

T = TypeVar("T")

CREATE_TOPICS_VERSION = 7
CALL_TIMEOUT_S = 60.0
LOOK_AGAIN_S = 0.01
HOSTS = (HOST, "localhost")  # in the certificates of nodes

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
        controllers: int = 0,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, Setting] | None = None,
        data_dir: Path | str | None = None,
        racks: Sequence[str] = (),
        static_quorum: bool = False,
        security: Security | str | None = None,
        surroundings: Surroundings = REAL_WORLD,
    ) -> None:
        """Configure a cluster.

        Each of `nodes` is broker and controller; with `controllers`, these are nodes of their own, with ids from 101 on, and
        the others only brokers. `topics` exist when the cluster is ready, with `default.replication.factor` replicas.
        `config` is for every node. `data_dir` has a directory for each node and is kept; without it, a temporary one is used
        and removed. The brokers are in `racks` in turn. The voters of a `static_quorum` are in `controller.quorum.voters`.
        `security` protects clients, brokers and controllers, as that of `Broker`; the nodes are User:node for each other.
        """
        self._security = Security(security) if isinstance(security, str) else security
        clients = CLIENTS if self._security is None else self._security.protocol
        try:
            self.layout = {each.node_id: each._replace(clients=clients) for each in nodes_of(nodes, controllers, racks)}
        except ValueError as error:
            raise BrokerError(str(error)) from None
        self.nodes: dict[int, Node] = {}
        self.cluster_id = ""
        self._topics = topic_partitions(topics)
        self._settings = setting_texts(config or {})
        if self._security is not None:
            is_authorizing = bool(self._settings.get("authorizer.class.name"))
            own = self._security.server_settings(HOSTS, is_authorizing=is_authorizing, has_others=True)
            self._settings = {**own, **self._settings}
        self._racks = tuple(racks)
        self._is_static = static_quorum
        self._surroundings = surroundings
        self.faults = Faults(surroundings)
        self._kept_dir = None if data_dir is None else Path(data_dir).absolute()
        self._directory: Path | None = None
        self._reserved: dict[int, socket.socket] = {}

    # --- properties

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self.layout)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(each.node_id for each in self.layout.values() if each.is_broker)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, running or not."""
        return ",".join(each.address(each.clients) for each in self.layout.values() if each.is_broker)

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(each.address(CONTROLLER) for each in self.layout.values() if each.is_controller)

    def address(self, node_id: int, listener_name: str | None = None) -> str:
        """`host:port` of a node, for clients unless another listener is named."""
        node = self.layout[node_id]
        return node.address(node.clients if listener_name is None else listener_name)

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Settings of a client of this cluster, in the names of Java's clients and of `barnabas.client`.

        `user` is one of its `Security`; the default is the first.
        """
        settings = {"bootstrap.servers": self.bootstrap_servers}
        return settings if self._security is None else settings | self._security.client_config(user)

    def librdkafka_config(self, user: str | None = None) -> dict[str, str]:
        """Like `client_config`, in the names of librdkafka, for confluent-kafka."""
        settings = {"bootstrap.servers": self.bootstrap_servers}
        return settings if self._security is None else settings | self._security.librdkafka_config(user)

    def ssl_context(self, user: str | None = None) -> ssl.SSLContext | None:
        """The TLS context for a client of this cluster, for aiokafka and kafka-python; None without TLS."""
        return load_client(self.client_config(user)).connect_options().tls

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
        is_first = self._directory is None
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
        node = Node(self._config(node_id), replace(self.faults.state.surroundings(), listen=self._listen))
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
            self._reserved = {}
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

    async def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """Move the leader of a partition to a replica, or to any other one in sync, and return its id.

        Returns when every running node knows it. Raises `RuleError` if that replica cannot lead.
        """
        leader = await next(iter(self.nodes.values())).move_leader(topic, partition, to)
        async with asyncio.timeout(CALL_TIMEOUT_S):
            while any(leader_of(each, topic, partition) != leader for each in self.nodes.values()):
                await asyncio.sleep(LOOK_AGAIN_S)
        return leader

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The id of the broker that leads a partition, as some running node knows it; None if none does."""
        return next((leader_of(each, topic, partition) for each in self.nodes.values()), None)

    def share_group(self, group_id: str) -> ShareGroup:
        """Return what shows which records a share group has acquired, by whom, and how often they were delivered."""

        def look(topic: str, partition: int, at: Callable[[Node], list[InFlight]]) -> list[InFlight]:
            leader = self.leader(topic, partition)
            return [] if leader is None or leader not in self.nodes else at(self.nodes[leader])

        return ShareGroup(group_id, look)

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
        self.faults.state.nodes.pop(node_id, None)
        return node

    async def _all(self, work: Iterable[Coroutine[Any, Any, object]]) -> None:
        """Do all of this at once. Raises the first error after everything has ended."""
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def _reserve_ports(self) -> None:
        """Bind the ports of all nodes at once, because each must know those of the others before it starts."""
        for node in list(self.layout.values()):
            self._reserve(node)

    def _reserve(self, node: LocalNode) -> None:
        ports = {}
        for name in node.listener_names:
            sock = self._surroundings.listen(HOST, 0)
            ports[name] = sock.getsockname()[1]
            self._reserved[ports[name]] = sock
        self.layout[node.node_id] = node._replace(ports=ports)

    def _listen(self, host: str, port: int) -> socket.socket:
        return self._reserved.pop(port, None) or self._surroundings.listen(host, port)

    def _config(self, node_id: int) -> ServerConfig:
        nodes = self.layout.values()
        more = {**TEST_DEFAULTS, **CLUSTER_DEFAULTS, **self._settings}
        log_dir = str(self.data_dir(node_id))
        given = settings_of(self.layout[node_id], nodes, log_dir, more, is_static=self._is_static)
        try:
            return load(given, broker_count=len(self.broker_ids))
        except ConfigError as error:
            raise BrokerError(f"config: {error}") from None

    def _format(self) -> None:
        """Format the log dirs of all nodes for one cluster, unless they are formatted."""
        assert self._directory is not None
        known = self._directory / "cluster-id"
        if known.exists():
            self.cluster_id = known.read_text().strip()
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        self.cluster_id = format_all(
            self.layout.values(),
            self.data_dir,
            self._surroundings.now_ms,
            self._surroundings.random_for("cluster"),
            is_static=self._is_static,
            records=() if self._security is None else self._security.scram_records(),
        )
        known.write_text(f"{self.cluster_id}\n")


def leader_of(node: Node, topic: str, partition: int) -> int | None:
    found = node.image.topics.get(topic)
    leader = None if found is None else found.partitions[partition].leader
    return None if leader is None or leader < 0 else leader


class Cluster:
    """A cluster in a thread of its own, for any client: `with Cluster(nodes=3) as cluster`.

    `async with Cluster(...)` returns an `AsyncCluster` instead.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        controllers: int = 0,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, Setting] | None = None,
        data_dir: Path | str | None = None,
        racks: Sequence[str] = (),
        static_quorum: bool = False,
        security: Security | str | None = None,
    ) -> None:
        """Like `AsyncCluster`."""
        self._cluster = AsyncCluster(
            nodes,
            controllers=controllers,
            topics=topics,
            config=config,
            data_dir=data_dir,
            racks=racks,
            static_quorum=static_quorum,
            security=security,
        )
        self.faults = self._cluster.faults
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

    def address(self, node_id: int, listener_name: str | None = None) -> str:
        """`host:port` of a node, for clients unless another listener is named."""
        return self._cluster.address(node_id, listener_name)

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Settings of a client of this cluster, in the names of Java's clients and of `barnabas.client`.

        `user` is one of its `Security`; the default is the first.
        """
        return self._cluster.client_config(user)

    def librdkafka_config(self, user: str | None = None) -> dict[str, str]:
        """Like `client_config`, in the names of librdkafka, for confluent-kafka."""
        return self._cluster.librdkafka_config(user)

    def ssl_context(self, user: str | None = None) -> ssl.SSLContext | None:
        """The TLS context for a client of this cluster, for aiokafka and kafka-python; None without TLS."""
        return self._cluster.ssl_context(user)

    def start(self) -> Self:
        """Start all nodes. Returns when each of them serves clients and the topics exist."""
        if self._thread is None:
            self._thread = LoopThread("barnabas-cluster")
            self.faults.in_loop = self._thread.run
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

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """Move the leader of a partition to a replica, or to any other one in sync, and return its id."""
        return self._call(self._cluster.move_leader(topic, partition, to=to))

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The id of the broker that leads a partition, as some running node knows it; None if none does."""
        return self._cluster.leader(topic, partition)

    def share_group(self, group_id: str) -> ShareGroup:
        """Return what shows which records a share group has acquired, by whom, and how often they were delivered."""
        return self._cluster.share_group(group_id).called_through(self._call)

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
        self.faults.in_loop = None
        if thread is not None:
            thread.close(CALL_TIMEOUT_S)
