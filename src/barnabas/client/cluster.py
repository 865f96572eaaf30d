"""The client's view of a cluster: its nodes and leaders, and requests sent to the right node.

>>> import asyncio
>>> from barnabas.client import controller
>>> from barnabas.testing import Broker
>>> from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
>>> async def main() -> None:
...     async with Broker({"orders": 3}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
...         state = await cluster.refresh(["orders"])
...         print(len(state.topics["orders"].partitions), cluster.state.leader("orders", 2).id)
...         response = await cluster.call(DescribeClusterRequest(), to=controller())
...         print(response.cluster_id == broker.cluster_id)
>>> asyncio.run(main())
3 1
True

`call` finds the node, picks the version, and retries what is safe to retry until a timeout; `send` tries once. The decisions
are pure functions in `routing`, `retry`, `versions`, `backoff` and `state`; this module does the waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client import settings
from barnabas.client.arguments import check_config
from barnabas.client.connection import Connection
from barnabas.client.coordinators import Coordinators, Found, find_requests, found_in, least_version
from barnabas.client.errors import (
    PERMANENT,
    AuthenticationError,
    CallTimeoutError,
    ClosedError,
    NoAnswerError,
    NoNodesError,
    NotABrokerError,
    NotConnectedError,
    UnknownHostError,
    error_code,
)
from barnabas.client.links import Links
from barnabas.client.refresh import SharedRefresh
from barnabas.client.retry import NOT_DONE, is_repeatable, may_retry, maybe_done, rows_not_done, whole_error
from barnabas.client.routing import (
    AnyBroker,
    Controller,
    Coordinator,
    CoordinatorType,
    Destination,
    Leader,
    Missing,
    NodeId,
    any_broker,
    resolve,
)
from barnabas.client.settings import ClientSettings
from barnabas.client.shared import begin, end
from barnabas.client.state import (
    CONTROLLERS,
    EMPTY_STATE,
    Asked,
    ClusterState,
    Node,
    Question,
    forget,
    learn_leaders,
    merge_describe_cluster,
    merge_metadata,
    metadata_question,
    metadata_question_by_id,
)
from barnabas.client.versions import NodeVersions
from barnabas.config.endpoints import address_text
from barnabas.config.values import ConfigError
from barnabas.wire import ErrorCode, KafkaError, MalformedError, Message, Uuid
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.metadata import MetadataResponse

_log = logging.getLogger(__name__)

T = TypeVar("T")
Subscriber = Callable[[ClusterState, ClusterState], None]

TICK_S = 30.0
MIN_AGE_S = 0.01
_PASSING = (OSError, TimeoutError, KafkaError, MalformedError)
_MAY_PASS = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.UNKNOWN_SERVER_ERROR)
_NODES_ONLY: Asked = frozenset()


class Cluster:
    """Used as `async with Cluster({"bootstrap.servers": "localhost:9092"}) as cluster`, by any tasks of one event loop."""

    def __init__(
        self, config: ClientSettings | Mapping[str, object], *, random: Callable[[], float] = random.random
    ) -> None:
        """Take settings by the names of Kafka's clients. Raises `ConfigError` with the name of a wrong setting."""
        check_config(config, ClientSettings)
        self.settings = config if isinstance(config, ClientSettings) else settings.load(config)
        self._random = random
        self._state = EMPTY_STATE
        self._links = Links(self.settings.connect_options(), self.settings.reconnect_backoff, random)
        addresses = self.settings.bootstrap_servers or self.settings.bootstrap_controllers
        self._bootstrap = {-1 - at: Node(-1 - at, *address) for at, address in enumerate(addresses)}
        self._coordinators = Coordinators(self._find_coordinators)
        self._followed: dict[str, float] = {}
        self._follows_all = False
        self._subscribers: list[Subscriber] = []
        self.on_response: Callable[[Message, Any], None] | None = None
        """Called with each request and its response; it must not block."""
        self._refresh = SharedRefresh(self._learn)
        self._keeping_fresh: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self._was_connected = False
        self._failures: dict[str, Exception] = {}  # by address, until the first connection

    # --- start and close

    async def start(self, timeout_ms: float | None = None) -> Self:
        """Connect to one of the bootstrap servers and learn the nodes of the cluster, with retries.

        Raises `CallTimeoutError` if no server can be reached within `bootstrap.timeout.ms`, or none that was reached knows the
        cluster within `default.api.timeout.ms`. `timeout_ms` replaces both. The message and `last_error.reasons` have the
        error of each server. If all servers fail in a way that retrying cannot fix (wrong credentials, an untrusted
        certificate, not a Kafka port), raises that error at once.
        """
        total_ms = self._total_ms(timeout_ms)
        bootstrap_ms = self._bootstrap_ms() if timeout_ms is None else total_ms
        try:
            try:
                await self._learn_nodes(min(bootstrap_ms, total_ms))
            except CallTimeoutError as error:
                if not self._was_connected:
                    raise self._unreachable(min(bootstrap_ms, total_ms)) from error
                if bootstrap_ms >= total_ms:
                    raise
                await self._learn_nodes(total_ms - bootstrap_ms)
        except BaseException:
            await self.close()
            raise
        self._keeping_fresh = begin(self._keep_fresh())
        return self

    async def _learn_nodes(self, timeout_ms: float) -> None:
        await self._until(timeout_ms, "reaching the cluster", lambda: self._refresh.wait(_NODES_ONLY))

    def _unreachable(self, timeout_ms: float) -> CallTimeoutError:
        """Return the error for a cluster that was never reached, with the last error of each bootstrap server."""
        reasons: dict[str, Exception] = {}
        for node in self._bootstrap.values():
            address = address_text(node.host, node.port)
            reasons[address] = self._failures.get(address) or NotConnectedError(f"{address} did not answer")
        role = "controller" if self.settings.bootstrap_controllers else "broker"
        text = f"no {role} could be reached within {timeout_ms:g} ms: {'; '.join(map(str, reasons.values()))}"
        return CallTimeoutError(text, NoNodesError(text, reasons))

    async def close(self) -> None:
        """Close all connections and end all tasks. Waiting calls raise `ClosedError`. Returns when all sockets are closed."""
        if self._closed.is_set():
            return
        self._closed.set()
        await end([self._keeping_fresh])
        await self._refresh.close()
        await self._coordinators.close()
        await self._links.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- state

    @property
    def state(self) -> ClusterState:
        """The cluster as known now, as an immutable value."""
        return self._state

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(old, new)` after each change; it must not block. Returns a function that unsubscribes."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber) if subscriber in self._subscribers else None

    async def refresh(self, topics: Iterable[str] = (), *, timeout_ms: float | None = None) -> ClusterState:
        """Refresh the nodes and all followed topics, and follow these topics too."""
        self.follow(topics)
        await self._until(
            self._total_ms(timeout_ms),
            "refreshing the cluster's state",
            lambda: self._refresh.wait(self._wanted(), fresh=True),
        )
        return self._state

    def follow(self, topics: Iterable[str]) -> None:
        """Keep these topics in `state` until they are unused for `metadata.max.idle.ms`."""
        now_s = asyncio.get_running_loop().time()
        self._followed.update((topic, now_s) for topic in topics)

    def follow_all(self) -> None:
        """Keep all topics in `state`."""
        self._follows_all = True

    def learn_leaders(self, leaders: Iterable[tuple[str, int, int, int]], nodes: Iterable[Node] = ()) -> None:
        """Take over new leaders that came with an error (KIP-951): topic, partition, leader id, leader epoch, and nodes."""
        self._publish(learn_leaders(self._state, leaders, nodes))

    async def metadata(
        self,
        topics: Iterable[str | Uuid] | None,
        *,
        authorized_operations: bool = False,
        allow_auto_topic_creation: bool = False,
        timeout_ms: float | None = None,
    ) -> ClusterState:
        """Return a state with these topics, by name or id, or with all (None). They are not followed or kept in `state`."""
        wanted = None if topics is None else list(topics)
        ids = [topic for topic in wanted or () if isinstance(topic, bytes)]
        names: Asked = None if wanted is None else frozenset(topic for topic in wanted if isinstance(topic, str))
        by_name = functools.partial(metadata_question, asked=names, allow_auto_topic_creation=allow_auto_topic_creation)

        async def ask() -> ClusterState:
            connection = await self._connection(await self._locate(any_broker()))
            state = EMPTY_STATE
            if names or not ids:
                state = await self._describe(connection, state, by_name, authorized_operations)
            if ids:  # brokers ignore the names in a request that also has ids
                by_id = functools.partial(metadata_question_by_id, ids=ids)
                state = await self._describe(connection, state, by_id, authorized_operations)
            return state

        return await self._until(self._total_ms(timeout_ms), "describing topics", ask)

    async def _describe(
        self,
        connection: Connection,
        state: ClusterState,
        question_in: Callable[[int], Question],
        authorized_operations: bool = False,
    ) -> ClusterState:
        """Send one Metadata request in the newest common version, and return the new state."""
        assert connection.versions is not None
        version = connection.versions.best("Metadata")
        question = question_in(version or 0)
        least, feature = question.least_version, "describing topics by id"
        if authorized_operations:
            question.request.include_topic_authorized_operations = True
            least, feature = max(least, 8), feature if least > 8 else "asking for authorized operations"
        response: MetadataResponse = await self._exchange(
            connection, question.request, least_version=least, feature=feature
        )
        if response.error_code:
            raise KafkaError(error_code(response.error_code))
        now_s = asyncio.get_running_loop().time()
        return merge_metadata(state, response, version or 0, question.asked, only=question.only, now_s=now_s)

    async def versions(self, to: Destination | None = None) -> NodeVersions:
        """Return the API versions and features of a node."""
        connection = await self._connection(await self._locate(to or any_broker()))
        assert connection.versions is not None
        return connection.versions

    async def coordinators(
        self,
        keys: Iterable[str],
        type: CoordinatorType = CoordinatorType.GROUP,
        *,
        timeout_ms: float | None = None,
    ) -> dict[str, int | KafkaError]:
        """Return the coordinator's node id for each group or transactional id, or its error. Uses one request for all."""
        wanted = [Coordinator(key, type) for key in dict.fromkeys(keys)]
        found: Found = {}

        async def ask() -> None:
            found.update(await self._coordinators.find(wanted))
            for answer in found.values():
                if isinstance(answer, KafkaError) and answer.code in NOT_DONE:
                    raise answer

        try:
            await self._until(self._total_ms(timeout_ms), "finding coordinators", ask)
        except (CallTimeoutError, KafkaError):
            if len(found) < len(wanted):
                raise
        return {each.key: found[each] for each in wanted}

    def forget_coordinator(self, key: str, type: CoordinatorType = CoordinatorType.GROUP) -> None:
        """Look the coordinator up again for the next request. Only needed after `send` got NOT_COORDINATOR, not after
        `call`."""
        self._coordinators.forget(Coordinator(key, type))

    # --- requests

    async def call(
        self,
        request: Message,
        to: Destination | None = None,
        *,
        version: int | None = None,
        least_version: int = 0,
        feature: str = "",
        timeout_ms: float | None = None,
        request_timeout_ms: float | None = None,
        repeat: bool | None = None,
        give_up_on: Collection[ErrorCode] = (),
        lane: str = "",
    ) -> Any:
        """Send a request and return the response, with retries until `timeout_ms` (default `default.api.timeout.ms`). Each
        attempt waits for `request_timeout_ms` (default `request.timeout.ms`).

        The request goes to any broker unless `to` is given, in the newest common version that can encode it unless `version`
        is given. A request that may have been carried out is only retried if `repeat`; the default is True for idempotent
        requests. An error of the whole request is retried if it is temporary, else raised as `KafkaError`. Errors of single
        rows are left to the caller; only if every row says that the node was the wrong one, the request is retried. Codes in
        `give_up_on` are not retried. `feature` names what needs `least_version`, for the error message.
        """
        to = to or any_broker()
        progress = _Progress()

        async def attempt() -> Any:
            connection = await self._connection(await self._locate(to), lane)
            response = await self._exchange(
                connection,
                request,
                request_timeout_ms,
                version=version,
                least_version=least_version,
                feature=feature,
                on_sent=progress.sent,
            )
            if (error := whole_error(response)) is not None:
                raise error
            if not isinstance(to, AnyBroker) and (code := rows_not_done(response)) is not None:
                raise _RowsNotDoneError(code, response)
            return response

        try:
            return await self._until(
                self._total_ms(timeout_ms),
                type(request).__name__.removesuffix("Request"),
                attempt,
                repeatable=is_repeatable(request) if repeat is None else repeat,
                give_up_on=give_up_on,
                before_retry=lambda error: self._reconsider(to, error),
                progress=progress,
            )
        except _RowsNotDoneError as error:
            return error.response

    async def send(
        self,
        request: Message,
        to: Destination | None = None,
        *,
        version: int | None = None,
        least_version: int = 0,
        feature: str = "",
        timeout_ms: float | None = None,
        lane: str = "",
        on_sent: Callable[[], None] | None = None,
        views: bool = False,
    ) -> Any:
        """Send a request once and return the response, even if it has error codes. `timeout_ms` defaults to
        `request.timeout.ms`.

        Requests of one lane share a connection to each node, and are answered one after the other. Use a separate lane for
        requests that wait at the broker, such as Fetch. `on_sent` is called when the request is written, before any later
        one: callers that must send in order wait for it. With `views`, records may be memoryviews of the response.
        """
        connection = await self._connection(await self._locate(to or any_broker()), lane)
        return await self._exchange(
            connection,
            request,
            timeout_ms,
            version=version,
            least_version=least_version,
            feature=feature,
            on_sent=on_sent,
            views=views,
        )

    async def post(self, request: Message, to: Destination, *, version: int | None = None, lane: str = "") -> None:
        """Send a request that has no response: Produce with acks=0."""
        connection = await self._connection(await self._locate(to), lane)
        await connection.post(request, version)

    async def _exchange(
        self, connection: Connection, request: Message, timeout_ms: float | None = None, **how: Any
    ) -> Any:
        longest_ms = self.settings.get_int("request.timeout.ms")
        timeout_ms = longest_ms if timeout_ms is None else timeout_ms
        try:
            response = await connection.call(request, timeout_ms=timeout_ms, **how)
            if self.on_response is not None:
                self.on_response(request, response)
            return response
        except TimeoutError:
            name = type(request).__name__.removesuffix("Request")
            if timeout_ms >= longest_ms:
                connection.close()  # responses come in order, so later requests would not be answered either
            raise NoAnswerError(f"{connection.address} did not answer {name} within {timeout_ms:g} ms") from None

    # --- attempts

    async def _until(
        self,
        timeout_ms: float,
        what: str,
        attempt: Callable[[], Awaitable[T]],
        *,
        repeatable: bool = True,
        give_up_on: Collection[ErrorCode] = (),
        before_retry: Callable[[Exception], Awaitable[None]] | None = None,
        progress: _Progress | None = None,
    ) -> T:
        """Repeat an attempt until it succeeds, fails for good, or the timeout ends."""
        progress = progress or _Progress()
        last_error: Exception | None = None
        attempts = 0
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    self._check_open()
                    attempts, progress.is_sent = attempts + 1, False
                    try:
                        return await attempt()
                    except (OSError, KafkaError) as error:
                        self._check_open()
                        if not may_retry(error, repeatable=repeatable or not progress.is_sent, give_up_on=give_up_on):
                            raise
                        last_error = error
                        progress.is_sent = maybe_done(error)
                    await self._pause(self.settings.retry_backoff.delay_ms(attempts - 1, self._random()) / 1000)
                    if before_retry is not None:
                        await before_retry(last_error)
        except (NoAnswerError, CallTimeoutError):
            raise
        except TimeoutError:
            self._check_open()
            why = f"; the last error: {last_error}" if last_error is not None else ""
            times = f"{attempts} attempt{'s' if attempts != 1 else ''}"
            text = f"{what}: timed out after {timeout_ms:g} ms and {times}{why}"
            raise CallTimeoutError(text, last_error, maybe_done=progress.is_sent) from last_error

    async def _reconsider(self, to: Destination, error: Exception) -> None:
        """Before a retry, refresh what led to the wrong node or to none."""
        with contextlib.suppress(*_PASSING):
            match to:
                case Coordinator():
                    self._coordinators.forget(to)
                case Leader(topic, _) if resolve(to, self._state, {}) is not Missing.LEADER:
                    await self._refresh.wait(frozenset({topic}))
                case _ if isinstance(error, OSError) or (isinstance(error, KafkaError) and error.code in NOT_DONE):
                    await self._refresh.wait(_NODES_ONLY)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ClosedError("the client is closed")

    def _total_ms(self, timeout_ms: float | None) -> float:
        return self.settings.get_int("default.api.timeout.ms") if timeout_ms is None else timeout_ms

    def _bootstrap_ms(self) -> int:
        return self.settings.get_int("bootstrap.timeout.ms")

    # --- nodes and connections

    async def _locate(self, to: Destination) -> int:
        """Return the id of the node that a request goes to. Raises `KafkaError` if there is none."""
        self._check_open()
        if isinstance(to, Leader):
            self.follow([to.topic])
        for _ in range(3):
            found = resolve(to, self._state, self._coordinators.known)
            if found is None:
                if not (ids := self._least_loaded()):
                    break
                return ids[0]
            if isinstance(found, int):
                return found
            if found is Missing.COORDINATOR:
                assert isinstance(to, Coordinator)
                answer = (await self._coordinators.find([to]))[to]
                if isinstance(answer, KafkaError):
                    raise answer
            else:
                await self._refresh.wait(frozenset({to.topic}) if isinstance(to, Leader) else _NODES_ONLY)
                if not isinstance(resolve(to, self._state, self._coordinators.known), int):
                    break
        raise _not_there(to, self._state)

    def _least_loaded(self) -> list[int]:
        """Return the ids of known nodes, or else of the bootstrap servers, in the order to try them."""
        nodes = self._state.nodes or self._bootstrap
        return self._links.least_loaded(node for node in nodes.values() if not node.is_fenced)

    async def _connection(self, node_id: int, lane: str = "") -> Connection:
        self._check_open()
        node = self._state.nodes.get(node_id) or self._bootstrap.get(node_id)
        if node is None:
            raise _not_there(NodeId(node_id), self._state)
        try:
            return await self._links.connection(node, lane)
        except ClosedError:  # the node has moved to another address meanwhile
            self._check_open()
            raise NotConnectedError(f"{node} has moved to another address, or left the cluster") from None

    # --- refreshing

    def _wanted(self) -> Asked:
        return None if self._follows_all else frozenset(self._followed)

    async def _learn(self, asked: Asked) -> None:
        """Ask one node after the other until one answers, and publish the new state."""
        tried: dict[str, Exception] = {}
        ids = self._least_loaded() if self._state.nodes else []
        if not ids or self.settings.get_str("metadata.recovery.strategy").lower() == "rebootstrap":
            ids += self._links.least_loaded(self._bootstrap.values())
        for node_id in ids:
            node = self._state.nodes.get(node_id) or self._bootstrap.get(node_id)
            if node is None or (address := address_text(node.host, node.port)) in tried:
                continue
            try:
                state = await self._learn_from(node_id, None if self._follows_all else asked)
            except (*_PASSING, *PERMANENT) as error:
                _log.debug("%s did not answer about the cluster: %s", address, error)
                tried[address] = error
                if not self._was_connected:
                    self._failures[address] = error
            else:
                self._publish(state)
                return
        reasons = list(tried.values())
        text = "; ".join(map(str, reasons))
        if all(map(_is_permanent, reasons)):
            raise reasons[0]
        if self._state is EMPTY_STATE and all(isinstance(error, UnknownHostError) for error in reasons):
            key = "bootstrap.servers" if self.settings.bootstrap_servers else "bootstrap.controllers"
            raise ConfigError(key, f"{key}: {text}")
        raise NoNodesError(f"no node of the cluster can be reached: {text}", tried)

    async def _bootstrap_connection(self, node_id: int) -> Connection:
        """Return the connection to a node.

        Before the first connection, each bootstrap server gets a share of the timeout, so that a silent one does not use up
        the time of the others. The attempt to connect to it continues.
        """
        if self._was_connected:
            return await self._connection(node_id)
        share_ms = self._bootstrap_ms() / max(len(self._bootstrap), 1)
        try:
            async with asyncio.timeout(share_ms / 1000):
                connection = await self._connection(node_id)
        except TimeoutError:
            node = self._bootstrap[node_id]
            text = f"{address_text(node.host, node.port)} did not answer within {share_ms:.0f} ms"
            raise NotConnectedError(text) from None
        self._was_connected = True
        self._failures.clear()
        return connection

    async def _learn_from(self, node_id: int, asked: Asked) -> ClusterState:
        connection = await self._bootstrap_connection(node_id)
        if self.settings.bootstrap_controllers:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            described: DescribeClusterResponse = await self._exchange(
                connection, request, least_version=1, feature="bootstrap.controllers"
            )
            if described.error_code:
                raise KafkaError(error_code(described.error_code), described.error_message)
            return merge_describe_cluster(self._state, described, now_s=asyncio.get_running_loop().time())
        assert connection.versions is not None
        if not connection.versions.serves("Metadata") and connection.versions.serves("Vote"):
            raise NotABrokerError(
                f"{connection.address} is a controller: use bootstrap.controllers instead of bootstrap.servers"
            )
        state = await self._describe(connection, self._state, functools.partial(metadata_question, asked=asked))
        if not state.nodes:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"{connection.address} knows of no brokers yet")
        return state

    def _publish(self, new: ClusterState) -> None:
        old, self._state = self._state, new
        self._links.follow(new.nodes)
        if new.says_the_same_as(old):
            return
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(old, new)
            except Exception:
                _log.exception("a subscriber to the cluster's state raised an exception")

    async def _keep_fresh(self) -> None:
        """Refresh the state before it is too old, and drop unused topics and connections."""
        failures = 0
        age_s = max(self.settings.get_int("metadata.max.age.ms") / 1000, MIN_AGE_S)
        while True:
            due_s = max(self._state.updated_at_s + age_s - asyncio.get_running_loop().time(), 0.0)
            await self._pause(min(due_s, TICK_S))
            self._forget_unused()
            if due_s > TICK_S:
                continue
            try:
                await self._refresh.wait(self._wanted())
                failures = 0
            except (*_PASSING, *PERMANENT) as error:
                _log.warning("the cluster's metadata is out of date and could not be refreshed: %s", error)
                await self._pause(self.settings.retry_backoff.delay_ms(failures, self._random()) / 1000)
                failures += 1

    def _forget_unused(self) -> None:
        now_s = asyncio.get_running_loop().time()
        idle_s = self.settings.get_int("metadata.max.idle.ms") / 1000
        unused = [topic for topic, used_at_s in self._followed.items() if now_s - used_at_s > idle_s]
        for topic in unused:
            del self._followed[topic]
        if unused and not self._follows_all:
            self._publish(forget(self._state, unused))
        connection_idle_ms = self.settings.get_int("connections.max.idle.ms")
        if connection_idle_ms >= 0:
            self._links.close_idle(connection_idle_ms / 1000)

    # --- coordinators

    async def _find_coordinators(self, type: CoordinatorType, keys: Sequence[str]) -> Found:
        connection = await self._connection(await self._locate(any_broker()))
        assert connection.versions is not None
        version = connection.versions.best("FindCoordinator")
        least, feature = least_version(type), f"finding the coordinator of a {type.name.lower()}"
        found: Found = {}
        for request in find_requests(type, keys, version or 0):
            response = await self._exchange(connection, request, least_version=least, feature=feature)
            found.update(found_in(type, request, response))
        return found


class _Progress:
    """Tracks whether a request was sent."""

    is_sent = False

    def sent(self) -> None:
        self.is_sent = True


class _RowsNotDoneError(KafkaError):
    """Every row says that the node was the wrong one. After the timeout, `response` is returned."""

    def __init__(self, code: ErrorCode, response: Any) -> None:
        super().__init__(code, "no row was carried out")
        self.response = response


def _is_permanent(error: Exception) -> bool:
    if isinstance(error, KafkaError) and not isinstance(error, AuthenticationError):
        return not error.code.retriable and error.code not in _MAY_PASS
    return isinstance(error, PERMANENT)


def _not_there(to: Destination, state: ClusterState) -> KafkaError:
    match to:
        case Leader(topic, partition):
            if topic in state.errors:
                return KafkaError(state.errors[topic], f"topic {topic}: {state.errors[topic].message}")
            if state.partition(topic, partition) is None:
                text = f"topic {topic} has no partition {partition}"
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition} of {topic} has no leader")
        case Coordinator(key, type):
            return KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator of {type.name.lower()} {key} is not available"
            )
        case Controller():
            return KafkaError(ErrorCode.NOT_CONTROLLER, "the controller is not known")
        case _:
            known = ", ".join(str(node) for node in state.nodes.values()) or "none"
            missing = f"node {to.id} is not known" if isinstance(to, NodeId) else "no node is available"
            return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"{missing}; known nodes: {known}")
