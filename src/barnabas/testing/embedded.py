"""A whole broker in this process, in the caller's event loop.

Its one rule: it stops what it started, and nothing else. The node runs as with `barnabas serve`. A temporary directory
is used unless one is passed, and removed when the broker closes, at the latest when the process ends. A process that
was forked while a broker ran may use it as a client, but never stops it or touches its directory.

There is no `kill`: only a process can be killed. `barnabas serve --port 0 --ready-file F` is a process.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import shutil
import socket
import ssl
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.broker.node import Node, NodeError
from barnabas.broker.surroundings import Surroundings
from barnabas.client.settings import load
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import reachable_text
from barnabas.config.server import FAULTS, FAULTS_LISTENER, METRICS, METRICS_LISTENER
from barnabas.config.server_config import ServerConfig
from barnabas.controller import topics as decisions
from barnabas.testing.faults import Faults
from barnabas.testing.records import Record, committed_records
from barnabas.testing.security import Security
from barnabas.testing.settings import Setting, Wanted, server_config, setting_texts, topic_partitions
from barnabas.testing.share_group import ShareGroup
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest

START_TIMEOUT_S = 30.0
TOPIC_TIMEOUT_MS = 30_000
LOOK_AGAIN_S = 0.005
_DEFAULT = -1  # use the node's own config

_with_temporary_dir: set[AsyncBroker] = set()


class BrokerError(Exception):
    """An operation that is not possible. The message says why and what to do."""


class AsyncBroker:
    """A broker in the caller's event loop: `async with AsyncBroker() as broker`.

    It responds only while that loop runs, so a client that blocks the loop never gets a response. Use `Broker` for
    those.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        config: Mapping[str, Setting] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        metrics: bool = False,
        security: Security | str | None = None,
    ) -> None:
        """Like `Broker`."""
        self._security = Security(security) if isinstance(security, str) else security
        self._topics = topic_partitions(topics)
        self.faults = Faults()
        self._kept_dir = None if data_dir is None else Path(data_dir).absolute()
        self._temporary_dir: Path | None = None
        self._addresses: dict[str, tuple[str, int]] = {}
        self._cluster_id = ""
        self._node: Node | None = None
        self._pid: int | None = None  # of the process in which it was started
        self._loop: asyncio.AbstractEventLoop | None = None  # in which it was started
        self._is_starting = False
        self._is_entered = False  # by `with` or `async with`
        try:
            given = {METRICS_LISTENER: ":0", **(config or {})} if metrics else config or {}
            self._wanted = self._want(setting_texts(given), host, port)
            self._config = server_config(self._wanted, "data", {})
        except ConfigError as error:
            raise BrokerError(f"config: {error}") from None
        if data_dir is not None and self._wanted.names_log_dirs:
            raise BrokerError("config: log.dirs and data_dir exclude each other")
        if port and "listeners" in self._wanted.settings:
            raise BrokerError("config: listeners and port exclude each other")
        for warning in self._config.warnings:
            warnings.warn(f"config: {warning}", stacklevel=3)

    def _want(self, texts: dict[str, str], host: str, port: int) -> Wanted:
        security = self._security
        if security is None:
            return Wanted(texts, host, port)
        hosts = tuple(dict.fromkeys(("localhost", "127.0.0.1", "::1", socket.getfqdn(), host)))
        is_authorizing = bool(texts.get("authorizer.class.name"))
        own = security.server_settings(tuple(filter(None, hosts)), is_authorizing=is_authorizing)
        return Wanted({**own, **texts}, host, port, security.protocol)

    # --- properties, valid from the first start until `close`

    @property
    def is_running(self) -> bool:
        return self._node is not None and not self.is_copy

    @property
    def is_copy(self) -> bool:
        """Whether the broker was started in another process, of which this one is a fork."""
        return self._pid not in (None, os.getpid())

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first client listener."""
        return self.listeners[self._config.advertised_listeners[0].listener_name]

    @property
    def host(self) -> str:
        return self.bootstrap_servers.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def listeners(self) -> dict[str, str]:
        """`host:port` of every listener by name, including the controller's."""
        self._require_start()
        ports = {name: port for name, (_, port) in self._addresses.items()}
        return {e.listener_name: reachable_text(e.host, ports[e.listener_name]) for e in self._config.listeners}

    @property
    def metrics_url(self) -> str:
        """URL of the metrics in Prometheus' format. /healthz and /readyz are beside it."""
        self._require_start()
        if METRICS not in self._addresses:
            raise BrokerError(f"the broker has no metrics: create it with metrics=True, or set {METRICS_LISTENER}")
        return f"http://{reachable_text(*self._addresses[METRICS])}/metrics"

    @property
    def faults_url(self) -> str:
        """URL where programs in other languages set faults: see docs/testing.md."""
        self._require_start()
        if FAULTS not in self._addresses:
            raise BrokerError(f"the broker has no control port: set {FAULTS_LISTENER} to :0 in config")
        return f"http://{reachable_text(*self._addresses[FAULTS])}"

    @property
    def cluster_id(self) -> str:
        self._require_start()
        return self._cluster_id

    @property
    def data_dir(self) -> Path:
        """The data directory of the broker: the first of its log dirs."""
        self._require_start()
        return Path(self._config.log_dirs[0])

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Settings of a client of this broker, in the names of Java's clients and of `barnabas.client`.

        `user` is one of its `Security`; the default is the first.
        """
        settings = {"bootstrap.servers": self.bootstrap_servers}
        return settings if self._security is None else settings | self._security.client_config(user)

    def librdkafka_config(self, user: str | None = None) -> dict[str, str]:
        """Like `client_config`, in the names of librdkafka, for confluent-kafka."""
        settings = {"bootstrap.servers": self.bootstrap_servers}
        return settings if self._security is None else settings | self._security.librdkafka_config(user)

    def ssl_context(self, user: str | None = None) -> ssl.SSLContext | None:
        """The TLS context for a client of this broker, for aiokafka and kafka-python; None without TLS."""
        return load(self.client_config(user)).connect_options().tls

    def __repr__(self) -> str:
        if not self._addresses:
            return f"<{type(self).__name__}, not started>"
        return f"<{type(self).__name__} at {self.bootstrap_servers}{'' if self.is_running else ', stopped'}>"

    # --- start and stop

    async def start(self) -> Self:
        """Start the broker. Returns when it is ready and its topics exist. Raises BrokerError if it runs already."""
        self.refuse_second_start()
        be_quiet()
        self._pid = os.getpid()
        self._is_starting = True
        try:
            self._config = self._prepared()
            await self._bring_up(_new_node(self._config, self.faults.state.surroundings()))
        except TimeoutError as error:
            text = f"the broker was not ready within {START_TIMEOUT_S:g} s; logging.getLogger('barnabas') has details"
            raise BrokerError(text) from error
        except (NodeError, OSError) as error:
            raise BrokerError(str(error)) from error
        finally:
            self._is_starting = False
        self._loop = asyncio.get_running_loop()
        return self

    async def stop(self) -> None:
        """Stop cleanly. Data and ports are kept for the next start, until `close`."""
        self.refuse_other_process()
        self._refuse_other_loop()
        node, self._node, self._loop = self._node, None, None
        if node is not None:
            self.faults.state.nodes.clear()
            await stop_node(node)

    async def restart(self) -> None:
        """Stop and start with the same data and ports."""
        self._running()
        await self.stop()
        await self.start()

    async def close(self) -> None:
        """Stop and remove the temporary directory. Does nothing in a forked process."""
        if self.is_copy:
            return
        self._refuse_other_loop()
        try:
            await self.stop()
        finally:
            self.forget()

    async def __aenter__(self) -> Self:
        self.enter()
        try:
            return await self.start()
        except BaseException:
            await self.close()
            raise

    def enter(self) -> None:
        """Begin a `with` block. Raises BrokerError if the broker runs, or is in a `with` block; it is not touched."""
        self.refuse_second_start()
        if self._is_entered:
            raise BrokerError("the broker is already in a `with` block: call start(), or create another Broker")
        self._is_entered = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def forget(self) -> None:
        """Release the ports and remove the temporary directory. Call after the node has stopped."""
        if not self.is_copy:
            self._addresses = {}
            self._pid = None
            self._is_entered = False
            if self._temporary_dir is not None:
                shutil.rmtree(self._temporary_dir, ignore_errors=True)
                self._temporary_dir = None
            _with_temporary_dir.discard(self)

    def refuse_other_process(self) -> None:
        """Raise BrokerError in a forked process, which has neither the event loop nor the thread of the broker."""
        if self.is_copy:
            raise BrokerError(
                f"this broker belongs to process {self._pid}, of which this one is a fork: "
                "connect to its bootstrap_servers, or create a new Broker here"
            )

    def refuse_second_start(self) -> None:
        """Raise BrokerError if the broker runs, or is being started."""
        self.refuse_other_process()
        if self._node is not None or self._is_starting:
            raise BrokerError(
                "the broker is already running: use it as it is, or create another Broker for a second one"
            )

    def _refuse_other_loop(self) -> None:
        if self._node is not None and self._loop not in (None, asyncio.get_running_loop()):
            raise BrokerError("the broker runs in another event loop: start, use and stop it in the same one")

    def _prepared(self) -> ServerConfig:
        if self._kept_dir is not None:
            self._kept_dir.parent.mkdir(parents=True, exist_ok=True)
        elif self._temporary_dir is None and not self._wanted.names_log_dirs:
            self._temporary_dir = Path(tempfile.mkdtemp(prefix="barnabas-"))
            _with_temporary_dir.add(self)
        return server_config(self._wanted, str(self._kept_dir or self._temporary_dir), self._addresses)

    async def _bring_up(self, node: Node) -> None:
        is_first = not self._addresses
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await node.start()
                self._node, self._cluster_id, self._addresses = node, node.cluster_id, dict(node.addresses)
                await self._create_users(node)
                if is_first:  # after a restart, missing topics were deleted on purpose
                    await self._create_missing(node)
        except BaseException:
            self._node = self._loop = None
            if is_first:
                self._addresses = {}
            await stop_node(node)
            raise

    def _require_start(self) -> None:
        if not self._addresses:
            raise BrokerError(
                "the broker was not started, or it is closed: use `with Broker() as broker:`, or call start()"
            )

    def _running(self) -> Node:
        self.refuse_other_process()
        self._refuse_other_loop()
        if self._node is None:
            raise BrokerError("the broker is not running: use `with Broker() as broker:`, or call start()")
        if self._node.failed.done():
            raise BrokerError(f"the broker has failed: {self._node.failed.exception()}")
        return self._node

    # --- topics

    async def create_topic(
        self, name: str, partitions: int | None = None, *, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Create a topic. Returns when clients can see it. Raises `barnabas.wire.KafkaError` like the broker."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=_DEFAULT if partitions is None else partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in setting_texts(config or {}).items()
            ],
        )
        created = await self._running().controller.write(decisions.create, [topic], timeout_ms=TOPIC_TIMEOUT_MS)
        (row,) = created.answers
        if row.error_code:
            raise KafkaError(ErrorCode(row.error_code), row.error_message)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises `barnabas.wire.KafkaError` like the broker."""
        node = self._running()
        topic_id = node.image.topics.ids.get(name)
        if topic_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        deleted = await node.controller.write(decisions.delete, [topic_id], timeout_ms=TOPIC_TIMEOUT_MS)
        if (error := deleted.answers[topic_id]) is not None:
            raise error

    async def records(self, topic: str, count: int = 0, *, timeout_s: float = 10.0) -> list[Record]:
        """Return the committed records of a topic, by partition and offset, once there are at least `count`.

        Raises TimeoutError if there are not enough in time, and `barnabas.wire.KafkaError` if `count` is 0 and there is
        no such topic.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            node = self._running()
            found = node.image.topics.get(topic)
            if found is None and not count:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
            numbers = range(0 if found is None else len(found.partitions))
            partitions = [node.replicas.partition(topic, number) for number in numbers]
            for partition in partitions:
                await partition.open()
            records = [record for partition in partitions for record in committed_records(partition)]
            if len(records) >= count:
                return records
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{topic} has {len(records)} records after {timeout_s:g} s, not {count}: {records}")
            await asyncio.sleep(LOOK_AGAIN_S)

    def share_group(self, group_id: str) -> ShareGroup:
        """Return what shows which records a share group has acquired, by whom, and how often they were delivered."""
        return ShareGroup(group_id, lambda topic, partition, look: look(self._running()))

    async def _create_users(self, node: Node) -> None:
        security = self._security
        if security is None or not security.has_sasl:
            return
        from barnabas.client.admin.users import ScramMechanism, ScramUpsertion, salted_upsertion
        from barnabas.controller import scram
        from barnabas.metadata.scram import ScramUser

        mechanisms = [ScramMechanism.of(name) for name in security.mechanisms if name.startswith("SCRAM")]
        for mechanism in mechanisms:  # one after another, because a request has each user once
            users = [each for each in security.users if ScramUser(mechanism, each) not in node.image.scram]
            wanted = [salted_upsertion(ScramUpsertion(each, mechanism, security.users[each])) for each in users]
            for user, error in (await node.controller.write(scram.alter, [], wanted)).items() if wanted else ():
                if error is not None:
                    raise BrokerError(f"security: could not create the user {user!r}: {error}")

    async def _create_missing(self, node: Node) -> None:
        for name, partitions in self._topics.items():
            if name not in node.image.topics.ids:
                try:
                    await self.create_topic(name, partitions)
                except KafkaError as error:
                    raise BrokerError(f"topics: could not create {name!r}: {error}") from error


def _new_node(config: ServerConfig, surroundings: Surroundings) -> Node:
    try:
        return Node(config, surroundings)
    except RuntimeError:  # trio's loop, or none
        raise BrokerError("there is no asyncio event loop here; `with Broker()` needs none") from None


async def stop_node(node: Node, *, hands_over: bool = True) -> None:
    await node.stop(hands_over=hands_over)
    if node.failed.done():
        node.failed.exception()  # retrieve the exception, which was already reported
    else:
        node.failed.cancel()


def be_quiet() -> None:
    """Raise the log level from INFO to WARNING, unless the test has set one."""
    logger = logging.getLogger("barnabas")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


@atexit.register
def _remove_temporary_dirs() -> None:
    for broker in list(_with_temporary_dir):
        broker.forget()
