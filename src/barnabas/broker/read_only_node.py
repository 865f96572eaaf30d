"""A node without a quorum that serves the log directories of a Kafka node, such as a backup or a crashed machine's disk.

Its one rule: nothing in the directories is written, not even a lock. The image is built from the metadata log, all of
it or up to an offset or a time. It is not known how much of the log's end was committed. Every change is refused with
POLICY_VIOLATION: clients do not retry it, as they would with NOT_CONTROLLER, and they show its text. A change without
effect (one that only validates) is answered.

The logs of all partitions in the directories can be read up to their ends, even if another node led them. A limit on
the metadata does not limit them. Groups and transactions are loaded from the coordinators' logs that are in the
directories. For them and for producers, the time stands still at the last metadata shown: no session times out, and
nothing expires.

Brokers are listed with their ids, racks and fencing from the log, but all at this node's own address: theirs may not
exist any more, and a client that connects to any broker must come back here. If all brokers are fenced, as after the
shutdown of a cluster, the broker that owns the directories is shown as alive, so that clients have one to connect to.
It is also shown as the leader of partitions without a live leader, if their log is here. Every client may see
everything: the ACLs in the metadata are shown but not enforced.

Not done: settings of other brokers, whose files are not here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from barnabas import __version__
from barnabas.broker.active_controller import check_deadline
from barnabas.broker.audit.audited import PATH as AUDIT_PATH
from barnabas.broker.context import FinalizedFeatures, Listener
from barnabas.broker.coordinators import Coordinators
from barnabas.broker.dynamic_config import DynamicConfig
from barnabas.broker.node import NodeError, finalized_features, limits_of
from barnabas.broker.served import served_apis
from barnabas.broker.server import Server
from barnabas.broker.services import NodeServices
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.broker.topic_creation import TopicCreation
from barnabas.config import properties, server
from barnabas.config.definitions import ConfigError
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import unsupported
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.situation import Situation
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.metadata.brokers import Broker, Endpoint
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import PMap
from barnabas.metadata.topics import Partition
from barnabas.offline.metadata import OfflineMetadata, load
from barnabas.raft import messages
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.raft.voters import VoterSet
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.read_only import ReadOnlyReplicas, find_logs
from barnabas.replicas.share.share_partitions import SharePartitions
from barnabas.replicated.decision import Result
from barnabas.replicated.loop import Appended, ignore_appended
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS
from barnabas.share_state.coordinator import ShareCoordinator
from barnabas.share_state.persister import Persister
from barnabas.slices import in_slices
from barnabas.steps import Slices, result_of
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.errors import StorageError
from barnabas.storage.log_dirs import META_PROPERTIES, MetaProperties, check_log_dirs
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.markers import EndedTransaction, Errors
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")

SERVER_PROPERTIES = "server.properties"
DEFAULT_LISTENERS = "PLAINTEXT://127.0.0.1:9092"

# Settings of the original node's network, ids and directories, which do not apply to this node.
_OF_THE_NETWORK = (
    *("listeners", "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name"),
    *("security.inter.broker.protocol", "controller.listener.names", "process.roles", "node.id", "broker.id"),
    *("controller.quorum.voters", "controller.quorum.bootstrap.servers", "log.dir", "log.dirs", "metadata.log.dir"),
    server.METRICS_LISTENER,
    AUDIT_PATH,
)
_AUTHORIZER = "authorizer.class.name"
_PREFIXES_OF_THE_NETWORK = ("listener.name.", "ssl.", "sasl.")


class Directories(NamedTuple):
    """The log directories found at the given paths, and the settings of their node."""

    log_dirs: tuple[Path, ...]
    metadata_log_dir: Path
    properties: Mapping[str, str]
    meta: MetaProperties


def find_directories(paths: Sequence[Path]) -> Directories:
    """Find the log dirs at or directly below the paths, else those named by a `server.properties` there."""
    found: dict[Path, None] = {}
    given: dict[str, str] = {}
    for path in paths:
        if not path.is_dir():
            raise NodeError(f"{path} is not a directory")
        settings = path / SERVER_PROPERTIES
        own = properties.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
        given |= own
        candidates = [path, *sorted(each for each in path.iterdir() if each.is_dir())]
        dirs = [each for each in candidates if _is_log_dir(each)]
        if not dirs:
            texts = f"{own.get('log.dirs', '')},{own.get('log.dir', '')},{own.get('metadata.log.dir', '')}".split(",")
            dirs = [each for each in (Path(text.strip()) for text in texts if text.strip()) if _is_log_dir(each)]
        found.update(dict.fromkeys(dirs))
    with_metadata = [each for each in found if metadata_log_directory(each).is_dir()]
    if not with_metadata:
        shown = ", ".join(map(str, paths))
        raise NodeError(f"there is no metadata log in {shown}: name the log dir that has __cluster_metadata-0")
    try:
        formatted = check_log_dirs(found).formatted
    except StorageError as error:
        raise NodeError(str(error)) from error
    meta = next(iter(formatted.values()), MetaProperties(None, None))
    return Directories(tuple(found), with_metadata[0], given, meta)


def _is_log_dir(path: Path) -> bool:
    return (path / META_PROPERTIES).is_file() or metadata_log_directory(path).is_dir()


def read_only_config(found: Directories, overrides: Mapping[str, str]) -> ServerConfig:
    """Return the settings of the directories' node as far as known, with this node's own listeners.

    Raises ConfigError for listeners or overrides that protect something and are not implemented. Those of the
    directories' node do not matter: ACLs are not enforced, and nothing can be changed.
    """
    of_file = {
        name: value
        for name, value in found.properties.items()
        if name not in _OF_THE_NETWORK and not name.startswith(_PREFIXES_OF_THE_NETWORK)
    }
    node_id = found.meta.node_id
    listeners = overrides.get("listeners", DEFAULT_LISTENERS)
    given = {
        **of_file,
        "node.id": found.properties.get("node.id", "1") if node_id is None else str(node_id),
        "process.roles": "broker,controller" if "CONTROLLER://" in listeners.upper() else "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "listeners": listeners,
        "log.dirs": ",".join(map(str, found.log_dirs)),
        "metadata.log.dir": str(found.metadata_log_dir),
        **overrides,
    }
    config = server.load(given)
    for error in unsupported(config):
        if error.key in ("listeners", *overrides):
            raise error
    for endpoint in config.listeners:
        if endpoint.security_protocol != "PLAINTEXT":
            name, protocol = endpoint.listener_name, endpoint.security_protocol
            text = f"Listener {name} has the security protocol {protocol}, but a read-only node serves PLAINTEXT alone"
            raise ConfigError("listeners", text)
    if overrides.get(_AUTHORIZER):
        raise ConfigError(_AUTHORIZER, f"{_AUTHORIZER} cannot be used with --read-only: ACLs are not enforced")
    return config


class ReadOnlyController:
    """Implements `broker.context.Controller`: runs decisions, and refuses those that would write records."""

    def __init__(self, node: ReadOnlyNode) -> None:
        self._node = node
        self._random = node.surroundings.random_for("controller")

    def heard(self, broker_id: int, broker_epoch: int) -> AbstractContextManager[None]:
        return nullcontext()  # no broker has a session here

    def raise_kraft_version(self, level: int) -> None:
        """Do nothing: the write that follows is refused."""

    async def write(
        self,
        decision: Callable[..., Result[R] | Slices[Result[R]]],
        *arguments: Any,
        timeout_ms: int | None = None,
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> R:
        if timeout_ms is not None:
            check_deadline(timeout_ms)
        node = self._node
        now = node.monotonic_ms()
        situation = Situation(
            node.image,
            node.config,
            node.surroundings.now_ms(),
            self._random,
            Heartbeats.started(node.image, now),
            now,
            node.cluster_id,
            node.metadata.kraft_version,
        )
        result = await in_slices(result_of(decision(situation, *arguments)))
        if result.records:
            raise refusal(node.config)
        accepted(result.response)
        return result.response


class StandingTime:
    """A clock that stands still at the time of the last metadata. Implements `replicated.scheduler.Scheduler`."""

    def __init__(self, moment_ms: int) -> None:
        self.moment_ms = moment_ms

    def now_ms(self) -> int:
        return self.moment_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> StandingTime:
        return self

    def cancel(self) -> None:
        pass


def refusal(config: ServerConfig) -> KafkaError:
    where = ", ".join(config.log_dirs)
    return KafkaError(ErrorCode.POLICY_VIOLATION, f"This node serves {where} read-only: nothing can be changed")


class ReadOnlyNode(NodeServices):
    """A read-only node. `start` returns when it answers requests. Implements `broker.context.Services`."""

    def __init__(
        self,
        found: Directories,
        config: ServerConfig,
        as_of: AsOf = EVERYTHING,
        surroundings: Surroundings = REAL_WORLD,
    ) -> None:
        authorizer = AuthorizerSettings(enabled=True, super_users=frozenset({str(ANONYMOUS)}))
        super().__init__(config, surroundings, authorizer)
        self.cluster_id = found.meta.cluster_id or ""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.addresses: dict[str, tuple[str, int]] = {}
        self.metadata = OfflineMetadata()
        self.image = self.metadata.image
        self.refusal = refusal(config)
        self._time = StandingTime(surroundings.now_ms())
        self.replicas: ReadOnlyReplicas
        self.coordinators = Coordinators(
            lambda: config,
            lambda: self.image,
            self._time,
            surroundings.monotonic_ms,
            surroundings.random_for("groups"),
            self._allocate_producer_ids,
            _write_no_markers,
            lambda partition_id, offset: None,
            lambda: self.replicas,
            lambda name: None,
        )
        self.controller = ReadOnlyController(self)
        self.topic_creation = TopicCreation(self.controller, config)
        self.log_directories = LogDirectories(lambda: config, self._directory_ids(found))
        self._found = found
        self._as_of = as_of
        self._has_logs = False
        self._server = Server(self, limits_of(config), surroundings.listen)

    @staticmethod
    def _directory_ids(found: Directories) -> dict[Path, Any]:
        formatted = check_log_dirs(found.log_dirs).formatted
        return {path: meta.directory_id for path, meta in formatted.items() if meta.directory_id is not None}

    # --- services for handlers

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions

    @property
    def share_state(self) -> ShareCoordinator:
        return self.coordinators.share_state

    @property
    def persister(self) -> Persister:
        return self.coordinators.persister

    @property
    def share_partitions(self) -> SharePartitions:
        return self.coordinators.share_partitions

    @property
    def quorum_leader_id(self) -> int:
        return self.metadata.leader_id

    @property
    def finalized_features(self) -> FinalizedFeatures:
        return finalized_features(self.image, self.metadata.kraft_version)

    async def ask_quorum(self, request: Message, version: int, listener_name: str) -> Message:
        if not isinstance(request, DescribeQuorumRequest):
            raise refusal(self.config)
        if not messages.is_described(request):
            return await in_slices(messages.unknown_topic(request))
        return describe_quorum(self.metadata, self.config.node_id)

    # --- start and stop

    async def start(self) -> None:
        self._bind()
        try:
            self.start_audit()
        except ConfigError as error:
            raise NodeError(str(error)) from error
        directory = metadata_log_directory(self._found.metadata_log_dir)
        text = self._found.properties.get("controller.quorum.voters", "")
        try:
            static_voters = VoterSet.parse(text, "CONTROLLER") if text else None
            self.metadata = await asyncio.to_thread(load, directory, self._as_of, static_voters)
        except (StorageError, ReplayError, ValueError) as error:
            raise NodeError(f"the metadata log in {directory} cannot be read: {error}") from error
        if self.metadata.problem is not None:
            _log.warning("%s", self.metadata.problem)
        self.image = self._here(self.metadata.image)
        await self._open_logs()
        self._server.start()

    async def stop(self) -> None:
        await self.topic_creation.stop()
        await self._server.stop()
        self.coordinators.stop()
        if self._has_logs:
            await self.replicas.stop()
        await self.stop_audit()

    def describe(self) -> Iterator[str]:
        """Yield a few lines that state what is served and how to reach it."""
        image = self.metadata.image
        cluster, count = (
            self.cluster_id or "(unknown)",
            f"{len(image.topics.names)} topics, {len(image.brokers)} brokers",
        )
        yield f"barnabas {__version__}: cluster {cluster} as node {self.config.node_id} left it, read-only"
        yield f"  metadata     up to offset {image.offset}, of {_shown_time(image)}: {count}"
        for name, (host, port) in self.addresses.items():
            kind = "controller" if name in self.config.controller_listener_names else "broker"
            yield f"  {name:<12} {host}:{port}   {len(served_apis(kind))} APIs of a {kind}"
        logs = sum(1 for _ in self.replicas)
        yield f"  data         {', '.join(self.config.log_dirs)}: the logs of {logs} partitions"
        host, port = next(iter(self.addresses.values()))
        yield f"reach it with bootstrap.servers={host}:{port}; stop it with Ctrl-C"

    # --- the parts

    def _bind(self) -> None:
        for endpoint in self.config.listeners:
            name = endpoint.listener_name
            listener = Listener(name, name in self.config.controller_listener_names)
            try:
                self.addresses[name] = self._server.bind(listener, endpoint.host, endpoint.port)
            except OSError as error:
                where = f"{endpoint.host or '*'}:{endpoint.port}"
                raise NodeError(
                    f"cannot listen on {where}: {error.strerror or error}; choose another port: "
                    "--override listeners=PLAINTEXT://127.0.0.1:19092"
                ) from error

    async def _open_logs(self) -> None:
        """Open the logs, and load groups and transactions."""
        image = self.image
        if image.provenance.last_contained_timestamp_ms > 0:
            self._time.moment_ms = image.provenance.last_contained_timestamp_ms
        try:
            logs = await asyncio.to_thread(find_logs, self.log_directories.paths, image)
        except StorageError as error:
            raise NodeError(f"the logs cannot be read: {error}") from error
        self.image = _with_leaders(image, logs, self.config.node_id)
        dynamic = DynamicConfig(self.config, image)
        self.replicas = ReadOnlyReplicas(
            self.config.node_id,
            self.log_directories,
            logs,
            dynamic.topic_values,
            now_ms=self._time.now_ms,
            random=self.surroundings.random_for("replicas"),
            config=lambda: dynamic.current,
            led=self.coordinators.led,
            refusal=lambda: refusal(self.config),
        )
        self._has_logs = True
        self.replicas.start(self.image)
        await self.coordinators.wait_loaded()

    async def _allocate_producer_ids(self) -> tuple[int, int]:
        raise refusal(self.config)

    def _here(self, image: MetadataImage) -> MetadataImage:
        """Return the image with every node at this node's address."""
        told = {each.listener_name: each for each in self.config.advertised_listeners}
        places = {}
        for endpoint in self.config.listeners:
            name = endpoint.listener_name
            host, port = self.addresses[name]
            if name in told and told[name].host:
                host, port = told[name].host, told[name].port or port
            places[name] = Endpoint(name, host, port, 0)
        listeners = PMap(places)
        brokers = {number: each._replace(listeners=listeners) for number, each in image.brokers.items()}
        if all(each.fenced for each in brokers.values()):
            own = brokers.get(self.config.node_id) or _unregistered(self.config.node_id)
            brokers[own.broker_id] = own._replace(listeners=listeners, fenced=False)
        controllers = {number: each._replace(listeners=listeners) for number, each in image.controllers.items()}
        return dataclasses.replace(image, brokers=PMap(brokers), controllers=PMap(controllers))


def _with_leaders(image: MetadataImage, logs: Iterable[TopicPartition], node_id: int) -> MetadataImage:
    """Return the image with a live leader for every log that is here. Leader epochs do not change."""
    alive = {number for number, broker in image.brokers.items() if not broker.fenced}
    leader = node_id if node_id in alive else min(alive)
    changed: dict[Uuid, list[Partition]] = {}
    for name in logs:
        topic = image.topics.get(name.topic)
        if topic is not None and topic.partitions[name.partition].leader not in alive:
            partitions = changed.setdefault(topic.topic_id, list(topic.partitions))
            partitions[name.partition] = partitions[name.partition]._replace(leader=leader)
    by_id = image.topics.by_id
    led = {topic_id: by_id[topic_id]._replace(partitions=tuple(found)) for topic_id, found in changed.items()}
    return dataclasses.replace(image, topics=image.topics._replace(by_id=by_id.update(led)))


async def _write_no_markers(partitions: Sequence[TopicPartition], ended: EndedTransaction) -> Errors:
    return {}


def _shown_time(image: MetadataImage) -> str:
    timestamp_ms = image.provenance.last_contained_timestamp_ms
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return f"{timestamp_ms} ms"


def _unregistered(broker_id: int) -> Broker:
    return Broker(broker_id, -1, ZERO_UUID, PMap(), PMap(), None, False, False, False, (), None)


def describe_quorum(metadata: OfflineMetadata, node_id: int) -> DescribeQuorumResponse:
    """Describe the quorum from the log. The log end offsets of other voters are unknown (-1)."""
    response = DescribeQuorumResponse
    end_offset = metadata.end_offset
    voters = [
        response.ReplicaState(
            replica_id=voter.id,
            replica_directory_id=voter.key.wire_directory_id,
            log_end_offset=end_offset if voter.id == node_id else -1,
        )
        for voter in metadata.voters
    ]
    nodes = [
        response.Node(
            node_id=voter.id,
            listeners=[response.Listener(name=name, host=host, port=port) for name, host, port in voter.listeners],
        )
        for voter in metadata.voters
    ]
    partition = response.PartitionData(
        leader_id=metadata.leader_id,
        leader_epoch=metadata.leader_epoch,
        high_watermark=end_offset,
        current_voters=voters,
    )
    topic = response.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])
    return response(topics=[topic], nodes=nodes)
