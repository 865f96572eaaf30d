"""One node: builds its parts, and starts and stops them in order. The only module that knows every part."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas import __version__
from barnabas.broker.active_controller import ActiveController
from barnabas.broker.context import FinalizedFeatures, Listener
from barnabas.broker.controller_channel import ControllerAddress, ControllerChannel
from barnabas.broker.controller_registration import ControllerRegistration
from barnabas.broker.controller_timers import ControllerTimers
from barnabas.broker.directory_assignments import DirectoryAssignments, Replica
from barnabas.broker.dynamic_config import DynamicConfig, check_protection
from barnabas.broker.forwarding import Forwarding
from barnabas.broker.lifecycle import BrokerLifecycle
from barnabas.broker.listener_securities import ListenerSecurities
from barnabas.broker.listener_security import Credentials
from barnabas.broker.loop_watch import LoopWatch
from barnabas.broker.metadata_quorum import MetadataQuorum
from barnabas.broker.metrics.observed import Observed
from barnabas.broker.own_connections import NOT_PROTECTED, to_brokers, to_controllers, with_own_stores
from barnabas.broker.preloading import import_coordinators
from barnabas.broker.replication import Replication
from barnabas.broker.served import advertised_keys
from barnabas.broker.server import Limits, ListenerLimits, Server
from barnabas.broker.services import NodeServices
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.broker.topic_creation import TopicCreation
from barnabas.client.errors import AuthenticationError, TlsError
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Endpoint, address_text, parse_loopback_address
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server import FAULTS, FAULTS_LISTENER, METRICS, METRICS_LISTENER
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import check_supported
from barnabas.controller import activation
from barnabas.controller.features import SHOWN_ORDER
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.versions import KRAFT_VERSION
from barnabas.raft import formatting
from barnabas.raft.ready import RaftConfig
from barnabas.raft.sole_voter import why_never_led, why_not_formatted, why_two_leaders
from barnabas.raft.stored_log import check_files, metadata_log_directory
from barnabas.raft.voters import Endpoint as RaftEndpoint
from barnabas.raft.voters import ReplicaKey, Voter, VoterHistory, VoterSet
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.maintenance import Maintenance
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Replicas
from barnabas.security.authorizer import AuthorizerSettings, parse_super_users
from barnabas.security.delegation_token import SECRET_KEY
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.storage.errors import StorageError
from barnabas.storage.files import create_directories, create_directory
from barnabas.storage.log_dirs import DirectoryLock, ScannedDir, check_owner, scan_log_dir
from barnabas.storage.quorum_state import recorded_voters
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid, random_uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from barnabas.broker.coordinators import Coordinators
    from barnabas.broker.http_listener import HttpListener
    from barnabas.groups.coordinator import GroupCoordinator
    from barnabas.replicas.share.share_partitions import SharePartitions
    from barnabas.share_state.coordinator import ShareCoordinator
    from barnabas.share_state.persister import Persister
    from barnabas.transactions.coordinator import TransactionCoordinator


MAX_FETCH_WAIT_MS = 500
COORDINATORS_TOPICS = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)


class NodeError(Exception):
    """Raised if a node cannot start, or did not stop cleanly. The text states the reason and the remedy."""


def finalized_features(image: MetadataImage, kraft_version: int) -> FinalizedFeatures:
    levels = {KRAFT_VERSION: kraft_version, **image.features}
    ordered = {name: levels[name] for name in (*SHOWN_ORDER, *sorted(levels)) if levels.get(name)}
    return FinalizedFeatures(image.offset, ordered)


class Node(NodeServices):
    """A broker, a controller, or both. `start` returns when it answers requests. Implements `broker.context.Services`.

    Raises ConfigError for a config that protects something and is not implemented.
    """

    def __init__(self, config: ServerConfig, surroundings: Surroundings = REAL_WORLD) -> None:
        check_supported(config)
        if config.get_str(FAULTS_LISTENER) and surroundings.faults is None:
            from barnabas.broker.faults.faults import Faults  # noqa: PLC0415  (only tests have faults)

            surroundings = Faults(surroundings).surroundings()
        enabled = bool(config.get_str("authorizer.class.name"))
        authorizer = AuthorizerSettings(
            enabled=enabled,
            super_users=parse_super_users(config.given.get("super.users", "") if enabled else ""),
            allow_everyone_if_no_acl_found=config.given.get("allow.everyone.if.no.acl.found", "").strip().lower()
            == "true",
        )
        receiver = config.get_str("barnabas.telemetry.receiver") or ""
        # Until the ACLs are loaded, only super users are authorized, as in Kafka: an entry may deny what all may otherwise.
        before = replace(authorizer, allow_everyone_if_no_acl_found=False)
        super().__init__(config, surroundings, before, telemetry_receiver=receiver)
        self._authorizer_with_acls = authorizer
        if surroundings.faults is not None:
            self.faults = surroundings.faults.attach(config.node_id, self)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.addresses: dict[str, tuple[str, int]] = {}
        self._random = surroundings.random_for("ids")
        self._credentials = Credentials(
            lambda: self.image, surroundings.random_for("logins"), surroundings, config.get_str(SECRET_KEY)
        )
        self._has_quorum = False
        nonce, now_ms = self._credentials.new_nonce, surroundings.now_ms
        self._to_controllers = to_controllers(self._current_config, nonce, now_ms)._replace(links=self.faults)
        self.channel = ControllerChannel(f"broker-{config.node_id}", self._find_controller, self._to_controllers)
        self._heartbeat_channel = ControllerChannel(
            f"broker-{config.node_id}-heartbeat",
            self._find_controller,
            self._to_controllers,
            config.get_int("broker.session.timeout.ms") / 2000,  # as in Kafka: in time for another one
        )
        self.forwarding = Forwarding(self.channel, lambda: self.is_active_controller)
        self._locks: list[DirectoryLock] = []
        self._formatted = False
        self._is_stopping = False
        self._directory_ids: dict[Path, Uuid] = {}
        self._bootstrap: list[Message] = []
        self._scanned: dict[str, ScannedDir | StorageError] = {}
        self.topic_creation: TopicCreation
        self.log_directories: LogDirectories
        self.replicas: Replicas
        self._coordinators: Coordinators | None = None
        self.quorum: MetadataQuorum
        self._lifecycle: BrokerLifecycle | None = None
        self._registration: ControllerRegistration | None = None
        self._joining: asyncio.Task[None] | None = None
        self._assignments = DirectoryAssignments(config.node_id, lambda: self.image, self._assign_replicas_to_dirs)
        self._timers: ControllerTimers | None = None
        self._maintenance: Maintenance | None = None
        self.replication = Replication(
            self._current_config,
            lambda: self.image,
            lambda: self.replicas,
            connections=to_brokers(self._current_config, nonce, now_ms)._replace(links=self.faults)
            if config.is_broker
            else NOT_PROTECTED,
            channel=self.channel,
            broker_epoch=lambda: self._broker_epoch,
        )
        self.loop_watch = LoopWatch(surroundings.monotonic_ms, surroundings.thread_cpu_ms)
        self._server = Server(self, limits_of(config), surroundings.listen)
        self._http: list[HttpListener] = []  # for metrics and for faults
        self._started_ms = surroundings.monotonic_ms()
        self._is_stopping = False
        self._securities = ListenerSecurities(self._credentials, self._server.secure)

    def _current_config(self) -> ServerConfig:
        return self.dynamic.current if self._has_quorum else self.config

    # --- services for handlers

    @property
    def controller(self) -> ActiveController:
        return self.quorum.controller

    @property
    def image(self) -> MetadataImage:
        return self.quorum.image

    @property
    def is_active_controller(self) -> bool:
        return self._has_quorum and self.controller.loop.is_leader

    @property
    def coordinators(self) -> Coordinators:
        """The coordinators, created at first use, so that a node without groups and transactions does not import them."""
        if self._coordinators is None:  # imported in a thread before, by `_start_broker` or right after the start
            from barnabas.broker.coordinators import Coordinators, LoopScheduler  # noqa: PLC0415
            from barnabas.broker.txn_markers import write_markers  # noqa: PLC0415

            self._coordinators = Coordinators(
                lambda: self.dynamic.current,
                lambda: self.image,
                LoopScheduler(self.surroundings),
                self.surroundings.session_ms,
                self.surroundings.random_for("groups"),
                self._allocate_producer_ids,
                partial(write_markers, self),
                self._delete_share_records,
                lambda: self.replicas,
                lambda name: self.topic_creation.begin([name]),
                self.replication.others.ask,
            )
            for partition in self.replicas:
                if partition.is_leader:
                    self._coordinators.led(partition, True)
            self._coordinators.start()
        return self._coordinators

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
        leader_id = self.quorum.driver.leader_id
        return -1 if leader_id is None else leader_id

    async def ask_quorum(self, request: Message, version: int, listener_name: str) -> Message:
        return await self.quorum.driver.handle(request, version, listener_name)

    @property
    def finalized_features(self) -> FinalizedFeatures:
        return finalized_features(self.image, self.quorum.kraft_version)

    # --- start and stop

    async def start(self) -> None:
        if self.surroundings.watches_loop:
            self.loop_watch.start()
        try:
            self._bind()
            await self._credentials.start()
            await self._start_http()
            self._open_log_dirs()
            self.start_audit()
            await asyncio.to_thread(self._check_files)
            await self._start_quorum()
            if self.config.is_broker:
                await self._first_of(self._enter_cluster())
                await self._start_broker()
            else:  # it serves the quorum before there is a leader
                self._joining = asyncio.create_task(self._join_later())
        except TlsError as error:
            raise NodeError(with_own_stores(error, self.config)) from error
        except (StorageError, ConfigError, AuthenticationError, TimeoutError) as error:
            raise NodeError(str(error)) from error
        except KafkaError as error:
            raise NodeError(_refused(error, self._to_controllers.principal)) from error
        self._securities.watch_files(lambda: self.dynamic.current)
        self._server.start()

    async def leave(self) -> None:
        """Shut the broker down in a controlled way: the active controller moves its leaderships to other brokers."""
        self._is_stopping = True
        await self._stop_joining()
        await self._assignments.stop()
        if self._lifecycle is not None:
            await self._lifecycle.stop()

    async def _stop_joining(self) -> None:
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.wait([self._joining])
        if self._registration is not None:
            await self._registration.stop()

    async def stop(self, *, hands_over: bool = True) -> None:
        """Stop cleanly. An active controller waits for the next one, unless the whole cluster stops.

        Raises NodeError at the end if the metadata log could not be closed, or the node failed meanwhile. What was not
        closed is recovered at the next start.
        """
        self._is_stopping = True
        had_failed = self.failed.done()
        self.loop_watch.stop()
        await self._securities.stop()
        await self._credentials.stop()
        await self.leave()
        if self._timers is not None:
            await self._timers.stop()
        if hands_over and self._has_quorum and self.quorum.driver.is_started:
            await self.quorum.resign()  # while the other controllers can still ask this one
        await self._server.stop()
        self.channel.close()
        self._heartbeat_channel.close()
        if self._has_quorum:
            await self.topic_creation.stop()
            await self.replication.stop()
            if self._maintenance is not None:
                await self._maintenance.stop()
            if self._coordinators is not None:
                self._coordinators.stop()
            await self.replicas.stop(self._broker_epoch)
        problem = await self._stop_quorum(hands_over=hands_over)
        await self.stop_audit()
        for lock in self._locks:
            lock.release()
        for listener in self._http:
            await listener.stop()
        if problem is not None:
            text = f"stopped, but the metadata log was not closed cleanly: {problem}. The next start recovers it"
            raise NodeError(text) from problem
        failure = self.failed.exception() if self.failed.done() else None
        if failure is not None and not had_failed:
            raise NodeError(f"stopped, but not cleanly: {failure}. The next start recovers the logs") from failure

    async def _stop_quorum(self, *, hands_over: bool) -> StorageError | None:
        if self._has_quorum:
            try:
                await self.quorum.stop(hands_over=hands_over)
            except StorageError as error:
                return error
        return None

    async def drop(self) -> None:
        """Stop at once and without a word, as if the process had died: no controlled shutdown, no resignation, no flush.

        The files are closed, so that another node can open them as after a crash of the process.
        """
        self._is_stopping = True
        self.loop_watch.stop()
        self.channel.close()
        self._heartbeat_channel.close()
        if self._coordinators is not None:
            self._coordinators.share_partitions.stop()  # what clients hold is not released when they lose the connection
        await self._server.drop()
        await self._stop_joining()
        await self._securities.stop()
        await self._credentials.stop()
        await self._assignments.stop()
        for part in (self._lifecycle, self.quorum if self._has_quorum else None):
            if part is not None:
                await part.drop()
        if self._timers is not None:
            await self._timers.stop()
        if self._has_quorum:
            await self.topic_creation.stop()
            await self.replication.stop()
            if self._maintenance is not None:
                await self._maintenance.stop()
            if self._coordinators is not None:
                self._coordinators.stop()
            await self.replicas.drop()
        await self.stop_audit()
        for lock in self._locks:
            lock.release()
        for listener in self._http:
            await listener.stop()

    def observed(self) -> Observed:
        """Return the parts of this node for its metrics."""
        has_quorum = self._has_quorum
        return Observed(
            self,
            self._server,
            self.loop_watch,
            self.failed,
            self._started_ms,
            is_stopping=self._is_stopping,
            quorum=self.quorum if has_quorum else None,
            replicas=self.replicas if has_quorum else None,
            log_directories=self.log_directories if has_quorum else None,
            coordinators=self._coordinators,
            lifecycle=self._lifecycle,
            maintenance=self._maintenance,
        )

    def describe(self) -> Iterator[str]:
        """Yield a few lines that state what is running and how to reach it."""
        roles = " and ".join(sorted(self.config.process_roles))
        yield f"barnabas {__version__}: node {self.config.node_id} is {roles} of cluster {self.cluster_id}"
        if self._formatted:
            yield f"  formatted {', '.join(map(str, self._directory_ids))} for a new cluster"
        takes_telemetry = bool(self.config.get_str("barnabas.telemetry.receiver"))
        for endpoint in self.config.listeners:
            host, port = self.addresses[endpoint.listener_name]
            kind = "controller" if self._is_controller_listener(endpoint) else "broker"
            count = len(advertised_keys(kind, takes_telemetry=takes_telemetry))
            yield f"  {endpoint.listener_name:<12} {address_text(host, port)}   {count} APIs of a {kind}"
        yield f"  data         {', '.join(self.config.log_dirs)}"
        if METRICS in self.addresses:
            yield f"  metrics      http://{address_text(*self.addresses[METRICS])}/metrics"
        if FAULTS in self.addresses:
            yield f"  faults       http://{address_text(*self.addresses[FAULTS])}/faults"
        if self.config.is_broker:  # at the address that its clients are told, which is the one in its certificate
            told = self._told(self.config.advertised_listeners)[0]
            yield f"reach it with bootstrap.servers={address_text(told.host, told.port)}; stop it with Ctrl-C"

    # --- the parts

    def _is_controller_listener(self, endpoint: Endpoint) -> bool:
        return endpoint.listener_name in self.config.controller_listener_names

    def _bind(self) -> None:
        for endpoint in self.config.listeners:
            listener = Listener(endpoint.listener_name, self._is_controller_listener(endpoint))
            security = self._securities.first(self.config, endpoint)
            try:
                address = self._server.bind(listener, endpoint.host, endpoint.port, security)
                self.addresses[endpoint.listener_name] = address
            except OSError as error:
                where = f"{endpoint.host or '*'}:{endpoint.port}"
                raise NodeError(
                    f"cannot listen on {where} for {endpoint.listener_name}: {error.strerror or error}; "
                    "choose another port in listeners"
                ) from error

    async def _start_http(self) -> None:
        """Answer for metrics, health and faults from now on, so that a long start can be watched."""
        # Few nodes have metrics. They import much, and a thread leaves the event loop free meanwhile.
        if self.config.get_str(METRICS_LISTENER):
            module = await asyncio.to_thread(import_module, "barnabas.broker.metrics.listener")
            await self._serve_http(METRICS_LISTENER, METRICS, partial(module.MetricsListener, self.observed))
        if self.config.get_str(FAULTS_LISTENER):
            from barnabas.broker.faults.listener import FaultsListener  # noqa: PLC0415  (only tests have faults)

            assert self.faults is not None
            await self._serve_http(FAULTS_LISTENER, FAULTS, partial(FaultsListener, self.faults, self.move_leader))

    async def _serve_http(self, setting: str, name: str, build: Callable[[socket.socket], HttpListener]) -> None:
        address = parse_loopback_address(setting, self.config.get_str(setting) or "")
        assert address is not None
        try:
            listener = build(self.surroundings.listen(*address))
        except OSError as error:
            reason = f"cannot listen on {address_text(*address)} for {name}: {error.strerror or error}"
            raise NodeError(f"{reason}; choose another port in {setting}, or empty it") from error
        self._http.append(listener)
        await listener.start()
        self.addresses[name] = listener.address

    # --- faults

    async def move_leader(self, topic: str, partition: int, to: int | None = None) -> int:
        """Move the leader of a partition to another replica. Raises RuleError, KafkaError or TimeoutError."""
        from barnabas.broker.faults.leaders import move_leader  # noqa: PLC0415  (for tests)

        return await move_leader(self.channel, lambda: self.image, topic, partition, to)

    def faults_changed(self) -> None:
        """Forget the routes, so that new ones ask for faults, or no longer do."""
        self.routes.clear()

    def close_connections(self) -> None:
        """Close all connections of clients and other nodes, at once."""
        self._server.close_connections()

    def _open_log_dirs(self) -> None:
        dirs = [Path(each) for each in self.config.log_dirs]
        metadata_dir = Path(self.config.metadata_log_dir)
        if metadata_dir not in dirs:
            dirs.append(metadata_dir)
        found = check_owner(dirs, self.config.node_id)  # before anything is changed, even a lock
        if not found.formatted and self.config.knows_other_controllers:
            ids = tuple(voter.id for voter in self.config.controller_quorum_voters)
            raise NodeError(why_not_formatted(self.config.node_id, ids))
        for log_dir in dirs:
            create_directories(log_dir.parent)
            create_directory(log_dir)
            self._locks.append(DirectoryLock(log_dir, self.surroundings.locks))
        found = check_owner(dirs, self.config.node_id)
        if not found.formatted:
            self._format(dirs, metadata_dir)
            found = check_owner(dirs, self.config.node_id)
        for log_dir, meta in found.formatted.items():
            self.cluster_id = meta.cluster_id or self.cluster_id
            if meta.directory_id is not None:
                self._directory_ids[log_dir] = meta.directory_id

    def _check_files(self) -> None:
        """Read the small files of all log dirs, so that damage is found before anything is written.

        A damaged log dir goes offline later, unless it is that of the metadata log or no other is left.
        """
        metadata_dir = Path(self.config.metadata_log_dir)
        self._bootstrap = formatting.read_bootstrap(metadata_dir)
        check_files(metadata_log_directory(metadata_dir))
        if not self.config.is_broker:
            return
        for log_dir in (Path(each).absolute() for each in self.config.log_dirs):
            try:
                self._scanned[str(log_dir)] = scan_log_dir(log_dir)
            except StorageError as error:
                if log_dir == metadata_dir.absolute():
                    raise
                self._scanned[str(log_dir)] = error
        failed = [str(found) for found in self._scanned.values() if isinstance(found, StorageError)]
        if len(failed) == len(self._scanned):
            raise NodeError("; ".join(failed))

    def _format(self, dirs: list[Path], metadata_dir: Path) -> None:
        """Format empty directories for a new cluster, with one voter of a dynamic quorum or the configured static voters."""
        ids = {log_dir: random_uuid(self._random) for log_dir in dirs}
        voters = None
        if self.config.is_controller and not self.config.controller_quorum_voters:
            key = ReplicaKey(self.config.node_id, ids[metadata_dir])
            voters = VoterSet([Voter(key, self._controller_listeners())])
        formatting.write_format(
            formatting.Formatting(
                cluster_id=str(random_uuid(self._random)),
                node_id=self.config.node_id,
                metadata_log_dir=metadata_dir,
                directory_ids=ids,
                bootstrap=formatting.bootstrap_records(formatting.effective_features()),
                voters=voters,
            ),
            self.surroundings.now_ms,
        )
        self._formatted = True

    def _controller_listeners(self) -> tuple[RaftEndpoint, ...]:
        return tuple(
            RaftEndpoint(e.listener_name, e.host or self.surroundings.host_name(), self._port(e))
            for e in self.config.advertised_controller_listeners
        )

    def _port(self, endpoint: Endpoint) -> int:
        return endpoint.port or self.addresses[endpoint.listener_name][1]

    async def _start_quorum(self) -> None:
        metadata_dir = Path(self.config.metadata_log_dir)
        raft = RaftConfig(
            node_id=self.config.node_id,
            directory_id=self._directory_ids.get(metadata_dir, Uuid(16)),
            cluster_id=self.cluster_id,
            listener_name=self.config.controller_listener_names[0],
            listeners=self._controller_listeners(),
            bootstrap_servers=tuple((a.host, a.port) for a in self.config.controller_quorum_bootstrap_servers),
            election_timeout_ms=self.config.get_int("controller.quorum.election.timeout.ms"),
            fetch_timeout_ms=self.config.get_int("controller.quorum.fetch.timeout.ms"),
            election_backoff_max_ms=self.config.get_int("controller.quorum.election.backoff.max.ms"),
            request_timeout_ms=self.config.get_int("controller.quorum.request.timeout.ms"),
            fetch_max_wait_ms=min(MAX_FETCH_WAIT_MS, self.config.get_int("controller.quorum.fetch.timeout.ms") // 2),
            retry_backoff_ms=self.config.get_int("controller.quorum.retry.backoff.ms"),
            fetch_max_bytes=self.config.get_int("controller.quorum.fetch.max.bytes"),
            fetch_snapshot_max_bytes=self.config.get_int("controller.quorum.fetch.snapshot.max.bytes"),
            joins=self.config.is_controller and self.config.get_bool("controller.quorum.auto.join.enable"),
        )
        self.quorum = MetadataQuorum(
            self.config,
            raft,
            metadata_log_directory(metadata_dir),
            surroundings=self.surroundings,
            on_failure=self._fail,
            activate=self._activate,
            check_voters=self._check_voters,
            to_controllers=self._to_controllers,
        )
        self.topic_creation = TopicCreation(self.controller, self.config, self.channel)
        self.dynamic = DynamicConfig(self.config, self.image)
        self.dynamic.watch_any(self._limit)
        self.controller.loop.subscribe(self._dismiss_clients_of_a_fenced_broker)
        self.controller.loop.subscribe(self.follow_quotas)
        self.dynamic.watch_any(lambda: self._securities.update(self.dynamic.current))
        self.controller.loop.subscribe(self.dynamic.image_changed)
        self.log_directories = LogDirectories(lambda: self.dynamic.current, self._directory_ids)
        self.replicas = Replicas(
            self.config.node_id,
            self.log_directories,
            self.dynamic.topic_values,
            now_ms=self.surroundings.now_ms,
            random=self.surroundings.random_for("replicas"),
            config=lambda: self.dynamic.current,
            led=self._led,
            offline=self._log_dir_failed,
            assign=self._assign_directory,
            followed=self.replication.fetchers.changed,
            propose=self.replication.proposals.propose,
            broker_epoch=lambda: self._broker_epoch,
        )
        self.controller.loop.subscribe(self.replicas.image_changed)
        self.dynamic.watch_any(self.replicas.settings_changed)
        self.dynamic.watch(("num.replica.fetchers",), lambda old, new: self.replication.fetchers.resize())
        self.controller.loop.subscribe(self._image_changed)
        self._has_quorum = True
        await self.quorum.start()
        self._server.start(is_controller=True)  # the voters need each other to elect a leader
        self._timers = ControllerTimers(self.controller, self.config, self.surroundings.sleep)
        self._timers.start()

    def _check_voters(self, voters: VoterHistory) -> None:
        metadata_dir = Path(self.config.metadata_log_dir)
        own = ReplicaKey(self.config.node_id, self._directory_ids.get(metadata_dir))
        if (why := why_never_led(own, voters, knows_others=self._knows_other_servers)) is not None:
            raise NodeError(f"the cluster of {metadata_dir} can never have a controller: {why}")
        if self.config.is_controller and not voters.can_reconfigure:
            recorded = recorded_voters(metadata_log_directory(metadata_dir))
            why = why_two_leaders(recorded, [each.id for each in self.config.controller_quorum_voters])
            if why is not None:
                raise NodeError(f"the cluster of {metadata_dir} could get two controllers: {why}")

    @property
    def _knows_other_servers(self) -> bool:
        """Whether controller.quorum.bootstrap.servers has an address that is not one of this node."""
        bound = {self.addresses[name] for name in self.config.controller_listener_names if name in self.addresses}
        own = {(each.host, each.port) for each in self._controller_listeners()} | bound
        own |= {(host, port) for _, port in bound for host in ("localhost", "127.0.0.1", "::1")}
        return any(
            each.port and (each.host, each.port) not in own for each in self.config.controller_quorum_bootstrap_servers
        )

    def _check_dynamic(self) -> None:
        """Raise NodeError if stored dynamic settings, perhaps of Apache Kafka, protect something and would be ignored."""
        own = self.image.config(ConfigResourceType.BROKER, str(self.config.node_id))
        try:
            check_protection(self.config, self.image, own, cluster_wide=False)
        except KafkaError as error:
            raise NodeError(
                f"the dynamic settings of broker {self.config.node_id} cannot be applied: {error.message}. "
                "Delete them with kafka-configs, while Apache Kafka runs on this directory"
            ) from None

    def _told(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Return the endpoints to advertise, with a reachable host and the real port."""
        return [e._replace(host=e.host or self.surroundings.host_name(), port=self._port(e)) for e in endpoints]

    async def _enter_cluster(self) -> None:
        """Wait for a leader and for the metadata, and register the controller. Raises TimeoutError as Kafka would end."""
        timeout_ms = self.config.get_int("initial.broker.registration.timeout.ms")
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.quorum.wait_loaded()
                await self._join()
        except TimeoutError:
            leader_id = self.quorum.driver.leader_id
            reason = "no leader of the metadata quorum is known" if leader_id is None else f"node {leader_id} leads it"
            if self.quorum.problem:
                raise TimeoutError(
                    f"this broker did not get into the cluster within {timeout_ms} ms: {self.quorum.problem}; "
                    "check the certificate and the login of this node for its controllers, and theirs"
                ) from None
            raise TimeoutError(
                f"this broker did not get into the cluster within {timeout_ms} ms: {reason}; "
                "check that a majority of the controllers runs, or raise initial.broker.registration.timeout.ms"
            ) from None

    async def _join_later(self) -> None:
        """Register a node that is only a controller, once there is a leader. A refusal ends the node."""
        try:
            await self.quorum.wait_loaded()
            await self._join()
        except (NodeError, KafkaError, OSError) as error:
            self._fail(error)

    async def _join(self) -> None:
        """Check what is stored about this node, and register its controller. The ACLs are loaded."""
        self.authorizer = self._authorizer_with_acls
        self._check_dynamic()
        if self.config.is_controller:
            listeners = self._told(self.config.advertised_controller_listeners)
            self._registration = ControllerRegistration(
                self.config, random_uuid(self._random), listeners, self.channel, lambda: self.image
            )
            self.controller.loop.subscribe(self._registration.image_changed)
            await self._registration.start()

    def _find_controller(self) -> ControllerAddress | None:
        """Return the address of the active controller. That of this node is the one it has bound."""
        leader = self.quorum.leader if self._has_quorum else None
        if leader is None or leader.id != self.config.node_id:
            return None if leader is None else ControllerAddress(*leader)
        host, port = self.addresses[self.config.controller_listener_names[0]]
        return ControllerAddress(leader.id, host, port, leader.host)

    async def _start_broker(self) -> None:
        if any(name in self.image.topics.ids for name in COORDINATORS_TOPICS):
            # Now, in a thread: in the turn in which it leads one of these partitions, all others would wait for 0.15 s.
            await import_coordinators()
        # This process holds the locks of the directories, so no earlier process of this broker is running.
        self.controller.heartbeats.forget(self.config.node_id)
        previous_epoch = self.replicas.take_scanned(self._scanned)
        self._check_log_dirs()  # before the controller is told of this broker
        self._lifecycle = BrokerLifecycle(
            self.config,
            cluster_id=self.cluster_id,
            incarnation_id=random_uuid(self._random),
            listeners=self._told(self.config.advertised_listeners),
            log_directories=self.log_directories,
            previous_epoch=previous_epoch,
            image=lambda: self.image,
            channel=self.channel,
            heartbeat_channel=self._heartbeat_channel,
        )
        self.dynamic.watch(("cordoned.log.dirs",), self._tell_controller)
        await self._first_of(self._lifecycle.register())
        # An older image would have it set newer logs aside.
        await in_slices(self.replicas.start_in_slices(self.image, self._scanned))
        self._scanned.clear()
        await self._first_of(self._lifecycle.start())
        self.replication.fetchers.start()
        world = self.surroundings
        self._maintenance = Maintenance(self.replicas, lambda: self.dynamic.current, world.now_ms, world.sleep)
        self._maintenance.start()
        self._assignments.start()
        self._check_log_dirs()

    async def _first_of(self, work: Any) -> None:
        """Wait for the work, or raise NodeError if the node fails before."""
        waiting = asyncio.ensure_future(work)
        await asyncio.wait({waiting, self.failed}, return_when=asyncio.FIRST_COMPLETED)
        if self.failed.done():
            waiting.cancel()
            error = self.failed.exception()
            raise NodeError(
                str(error) if isinstance(error, StorageError) else f"the metadata log cannot be read: {error}"
            )
        await waiting

    def _activate(self) -> None:
        """Write what a newly active controller writes first."""
        if self.quorum.has_open_transaction:
            self.controller.write_nowait(
                activation.abort_transaction, "The controller ended before the transaction did"
            )
        self.controller.write_nowait(activation.write_bootstrap, self._bootstrap)

    def _limit(self) -> None:
        limits = limits_of(self.dynamic.current)
        if limits != self._server.limits:
            self._server.limit(limits)

    def _tell_controller(self, old: ServerConfig, new: ServerConfig) -> None:
        self._beat_soon()

    def _beat_soon(self) -> None:
        if self._lifecycle is not None:
            self._lifecycle.beat_soon()

    def _log_dir_failed(self) -> None:
        self._check_log_dirs()
        self._beat_soon()

    def _check_log_dirs(self) -> None:
        """Stop the node if the log dir of the metadata log, or every log dir, has failed."""
        directories = self.log_directories
        metadata_dir = str(Path(self.config.metadata_log_dir).absolute())
        if metadata_dir in directories.paths and not directories.is_online(metadata_dir):
            reason = directories.failure(metadata_dir)
            self._fail(StorageError(f"the log dir {metadata_dir} has failed, and the metadata log is in it: {reason}"))
        elif not any(map(directories.is_online, directories.paths)):
            reasons = "; ".join(f"{path}: {directories.failure(path)}" for path in directories.paths)
            self._fail(StorageError(f"all log dirs have failed: {reasons}"))

    def _assign_directory(self, partition: Partition, directory_id: Uuid, accepted: Callable[[], None]) -> None:
        self._assignments.assign(Replica(partition.topic_id, partition.partition_id), directory_id, accepted)

    async def _assign_replicas_to_dirs(
        self, directories: list[AssignReplicasToDirsRequest.DirectoryData]
    ) -> AssignReplicasToDirsResponse:
        assert self._lifecycle is not None
        return await self._lifecycle.assign_replicas_to_dirs(directories)

    @property
    def _broker_epoch(self) -> int:
        return -1 if self._lifecycle is None else self._lifecycle.epoch

    def _led(self, partition: Partition, leads: bool) -> None:
        if self._coordinators is not None or partition.topic in COORDINATORS_TOPICS:
            self.coordinators.led(partition, leads)

    def _dismiss_clients_of_a_fenced_broker(
        self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]
    ) -> None:
        if self._is_stopping and _is_fenced(new, self.config.node_id):
            # Before a client reads in Metadata that no broker is left: some clients then forget this one for good.
            self._server.dismiss_clients()

    def _delete_share_records(self, partition_id: int, offset: int) -> None:
        self.replicas.leader(SHARE_GROUP_STATE_TOPIC, partition_id).delete_records(offset)

    def _image_changed(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> Slices[None] | None:
        return None if self._coordinators is None else self._coordinators.image_changed(old, new, records)

    async def _allocate_producer_ids(self) -> tuple[int, int]:
        assert self._lifecycle is not None
        return await self._lifecycle.allocate_producer_ids()

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


def _is_fenced(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is None or broker.fenced


def _refused(error: KafkaError, principal: str) -> str:
    """Explain why the controller of this node refused the node itself."""
    if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return f"the controller refused this node: {error}"
    return (
        f"the authorizer does not allow this node to register with its controller ({error.code.name}): "
        f"add {principal}, the principal of its own connections, to super.users, "
        "or allow it CLUSTER_ACTION on the cluster"
    )


def limits_of(config: ServerConfig) -> Limits:
    return Limits(
        config.socket_request_max_bytes,
        config.connections_max_idle_ms,
        config.max_connections,
        config.max_connections_per_ip,
        config.max_connections_per_ip_overrides,
        max_connection_creation_rate=config.get_int("max.connection.creation.rate"),
        listeners={each.listener_name: _listener_limits(config, each.listener_name) for each in config.listeners},
        request_memory_max_bytes=_least_limit(config, "queued.max.request.bytes", "barnabas.request.memory.max.bytes"),
        response_memory_max_bytes=config.get_int("barnabas.response.memory.max.bytes"),
        request_stall_ms=config.get_int("barnabas.request.stall.ms"),
    )


def _listener_limits(config: ServerConfig, listener_name: str) -> ListenerLimits:
    max_connections = config.for_listener(listener_name, "max.connections")
    rate = config.for_listener(listener_name, "max.connection.creation.rate")
    assert isinstance(max_connections, int) and isinstance(rate, int)
    of_brokers = [each for each in config.listeners if each.listener_name not in config.controller_listener_names]
    is_protected = listener_name == config.inter_broker_listener_name and len(of_brokers) > 1
    return ListenerLimits(max_connections, rate, is_protected)


def _least_limit(config: ServerConfig, *names: str) -> int:
    """Return the lowest of these settings that is a limit, or -1 if none is."""
    return min((limit for name in names if (limit := config.get_int(name)) > 0), default=-1)
