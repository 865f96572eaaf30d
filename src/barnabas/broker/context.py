"""The context that a handler gets with a request: the node's services, and the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Result
from barnabas.replicated.loop import Appended, ignore_appended
from barnabas.security.acl import CLUSTER_NAME, WILDCARD, AclOperation, ResourceType
from barnabas.security.audit_line import MAX_ROWS, Denial, MetadataRecords
from barnabas.security.authorizer import (
    AuthorizerSettings,
    authorize_by_resource_type,
    authorized_operations,
    is_authorized,
)
from barnabas.security.principal import KafkaPrincipal
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.audit.audited import Audit
    from barnabas.broker.client_metrics import ClientMetrics
    from barnabas.broker.counters import RequestCounters
    from barnabas.broker.dispatch import Route
    from barnabas.broker.encoded_topics import EncodedTopics
    from barnabas.broker.faults.faults import NodeFaults
    from barnabas.broker.forwarding import Forwarding
    from barnabas.broker.login import Login
    from barnabas.broker.node_quotas import NodeQuotas
    from barnabas.broker.request_time import RequestTime
    from barnabas.broker.topic_creation import TopicCreation
    from barnabas.controller.mutation_quotas import MutationQuotas
    from barnabas.groups.coordinator import GroupCoordinator
    from barnabas.quotas.clients import ClientQuota
    from barnabas.replicas.fetch_sessions import FetchSessions
    from barnabas.replicas.log_directories import LogDirectories
    from barnabas.replicas.replicas import Replicas
    from barnabas.replicas.share.share_partitions import SharePartitions
    from barnabas.share_state.coordinator import ShareCoordinator
    from barnabas.share_state.persister import Persister
    from barnabas.transactions.coordinator import TransactionCoordinator

R = TypeVar("R")


class FinalizedFeatures(NamedTuple):
    """The feature levels the cluster has agreed on, and the metadata offset they were read at."""

    epoch: int
    levels: dict[str, int]


class Encoded(NamedTuple):
    """A cached response body, and the metadata epoch for which it is valid."""

    epoch: int
    body: bytes


class Controller(Protocol):
    """The active controller, on this node or another."""

    def write(
        self,
        decision: Callable[..., Result[R] | Slices[Result[R]]],
        *arguments: Any,
        timeout_ms: int | None = None,
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> Awaitable[R]:
        """Decide, append the records, and return the response when they are committed.

        `decision(situation, *arguments)` is one of barnabas.controller's, a generator if it may be long. `accepted` is
        called with its response once the records are appended: it applies the decision's changes to soft state.
        `appended` is called with the leader epoch and the first and last offset of records that are appended. Raises
        KafkaError: NOT_CONTROLLER, or REQUEST_TIMED_OUT if the timeout is not positive (nothing is changed) or the commit
        takes much longer than usual (the change may still happen).
        """
        ...

    def heard(self, broker_id: int, broker_epoch: int) -> AbstractContextManager[None]:
        """Note that a broker has sent a heartbeat, from now until it is answered."""
        ...

    def raise_kraft_version(self, level: int) -> None:
        """Raise kraft.version before the next records are written. Raises KafkaError if that is impossible."""
        ...


@runtime_checkable
class Services(Protocol):
    """The services of a node that its handlers use. `services.NodeServices` implements those that all nodes share."""

    config: ServerConfig
    cluster_id: str
    encoded: dict[tuple[Any, ...], Encoded]
    encoded_topics: EncodedTopics
    authorizer: AuthorizerSettings
    audit: Audit | None
    client_metrics: ClientMetrics
    quotas: NodeQuotas
    fetch_sessions: FetchSessions
    forwarding: Forwarding | None  # None if no other node can be the active controller
    faults: NodeFaults | None  # None unless the node may have some, for tests
    routes: dict[tuple[bool, bytes], Route]
    monotonic_ns: Callable[[], int]

    def request_counters(self, request: str, version: int) -> RequestCounters:
        """Return the counters of an API in one version."""
        ...

    @property
    def controller(self) -> Controller: ...

    @property
    def topic_creation(self) -> TopicCreation: ...

    @property
    def log_directories(self) -> LogDirectories: ...

    @property
    def refusal(self) -> KafkaError | None:
        """Error returned for every write on a read-only node, or None."""
        ...

    @property
    def replicas(self) -> Replicas: ...

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...

    @property
    def share_state(self) -> ShareCoordinator: ...

    @property
    def persister(self) -> Persister: ...

    @property
    def share_partitions(self) -> SharePartitions: ...

    @property
    def quorum_leader_id(self) -> int:
        """The id of the metadata quorum's leader, -1 if unknown."""
        ...

    def monotonic_ms(self) -> int:
        """Monotonic time in milliseconds."""
        ...

    async def ask_quorum(self, request: Message, version: int, listener_name: str) -> Message:
        """Send a raft request or DescribeQuorum to this node's replica of the metadata log."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        ...

    @property
    def finalized_features(self) -> FinalizedFeatures: ...


class Listener(NamedTuple):
    """The listener that received a request."""

    name: str
    is_controller: bool

    @property
    def kind(self) -> str:
        """The listener type in the message schemas, which decides the APIs served here."""
        return "controller" if self.is_controller else "broker"


class ClientInformation:
    """The client software at the other end of a connection, and the state of the connection.

    `throttling` sets `mute_ms`: after the response, the connection reads no request for this time. `time` is that of the
    request which is answered, while it is measured. `login` is None unless the listener uses SASL. `at_close` is called when
    the connection is closed.
    """

    __slots__ = ("at_close", "closed", "login", "mute_ms", "port", "software_name", "software_version", "time")

    def __init__(self) -> None:
        self.port = 0
        self.software_name = self.software_version = "unknown"  # until an ApiVersions request names them
        self.closed = False
        self.at_close: Callable[[], None] | None = None
        self.mute_ms = 0
        self.login: Login | None = None
        self.time: RequestTime | None = None


class Peer(NamedTuple):
    """The caller at the other end of a connection."""

    host: str
    principal: KafkaPrincipal
    listener: Listener
    information: ClientInformation | None = None
    is_forwarded: bool = False  # the request came in the envelope of a broker


class _Recording:
    """A `Controller` that notes in a context which records the request appended, for the audit log."""

    def __init__(self, controller: Controller, context: Context) -> None:
        self._controller = controller
        self._context = context

    def write(
        self,
        decision: Callable[..., Result[R] | Slices[Result[R]]],
        *arguments: Any,
        timeout_ms: int | None = None,
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> Awaitable[R]:
        return self._controller.write(
            decision, *arguments, timeout_ms=timeout_ms, accepted=accepted, appended=self._context.note_appended
        )

    def heard(self, broker_id: int, broker_epoch: int) -> AbstractContextManager[None]:
        return self._controller.heard(broker_id, broker_epoch)

    def raise_kraft_version(self, level: int) -> None:
        self._controller.raise_kraft_version(level)


class Context:
    """The services, caller and header values of one request, and what the audit log shows of it.

    `denied` are the first permissions that the caller lacked, `more_denied` is the number of others, and `appended` are
    the records that the request appended to the metadata log. They are noted only if there is an audit log. `is_left` is
    true when the client has disconnected before its answer.
    """

    __slots__ = (
        "api",
        "appended",
        "began_ns",
        "client_id",
        "correlation_id",
        "denied",
        "frame",
        "is_exempt",
        "is_left",
        "more_denied",
        "peer",
        "request_bytes",
        "services",
        "throttle_time_ms",
        "throttled_by",
        "time",
        "version",
    )

    def __init__(
        self,
        services: Services,
        peer: Peer,
        version: int,
        correlation_id: int,
        client_id: str | None,
        began_ns: int = 0,
        request_bytes: int = 0,
        time: RequestTime | None = None,
        api: str = "",
    ) -> None:
        self.services = services
        self.peer = peer
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.began_ns = began_ns
        self.frame = b""  # the request as it came, if it may be forwarded
        self.request_bytes = request_bytes  # header and body
        self.time = time  # None: it is not measured
        self.is_exempt = False  # from the quota on time
        self.throttle_time_ms = 0
        self.throttled_by: ClientQuota | MutationQuotas | None = None
        self.api = api
        self.denied: Sequence[Denial] = ()
        self.more_denied = 0
        self.is_left = False
        self.appended: Sequence[MetadataRecords] = ()

    def throttle(self, quota: ClientQuota | MutationQuotas, time_ms: int) -> None:
        """Throttle the client for this time, if no other quota does so for longer."""
        if time_ms > self.throttle_time_ms:
            self.throttle_time_ms = time_ms
            self.throttled_by = quota

    @property
    def image(self) -> MetadataImage:
        return self.services.image

    @property
    def config(self) -> ServerConfig:
        return self.services.config

    @property
    def controller(self) -> Controller:
        services = self.services
        return services.controller if services.audit is None else _Recording(services.controller, self)

    @property
    def listener(self) -> Listener:
        return self.peer.listener

    @property
    def login(self) -> Login | None:
        """The login that is under way on this connection."""
        login = None if self.peer.information is None else self.peer.information.login
        return login if login is not None and login.is_under_way else None

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Return True if the caller is authorized for the operation on the resource.

        For what the request needs: otherwise it is denied something, which the audit log shows.
        """
        if self.is_allowed(operation, resource_type, name):
            return True
        self._note_denied(operation, resource_type, name)
        return False

    def is_allowed(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Do the same where a no denies nothing: rows are left out, or another permission is enough."""
        services, peer = self.services, self.peer
        if not services.authorizer.enabled:
            return True
        acls = services.image.acls.index
        return is_authorized(acls, services.authorizer, peer.principal, peer.host, operation, resource_type, name)

    def may_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return True if the caller is authorized for the operation on at least one resource of the type."""
        services, peer = self.services, self.peer
        acls = services.image.acls.index
        if authorize_by_resource_type(acls, services.authorizer, peer.principal, peer.host, operation, resource_type):
            return True
        self._note_denied(operation, resource_type, WILDCARD)
        return False

    def _note_denied(self, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        if self.services.audit is None:
            return
        if len(self.denied) < MAX_ROWS:
            self.denied = (*self.denied, Denial(operation.name, resource_type.name, name))
        else:
            self.more_denied += 1

    def for_later(self) -> Context:
        """Return a context of the same request, for work that goes on after its answer."""
        return Context(self.services, self.peer, self.version, self.correlation_id, self.client_id, api=self.api)

    def for_message(self, api: str, version: int) -> Context:
        """Return a context for a request that this node makes for the caller. Its answer does not mute the connection."""
        peer = self.peer._replace(information=None)
        return Context(self.services, peer, version, self.correlation_id, self.client_id, api=api)

    def note_appended(self, epoch: int, first: int, last: int) -> None:
        """Note that this request appended these records to the metadata log."""
        self.appended = (*self.appended, MetadataRecords(epoch, first, last))
        if self.is_left and self.services.audit is not None:
            self.services.audit.appended_after_leaving(self)

    def require_on_cluster(self, operation: AclOperation) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED if the caller is not authorized for the operation on the cluster."""
        if not self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
            text = f"The request of {self.peer.principal} from {self.peer.host} needs {operation.name} permission."
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)

    @property
    def may_everything(self) -> bool:
        """True if the caller is authorized for everything, so that single checks can be skipped."""
        authorizer = self.services.authorizer
        return not authorizer.enabled or str(self.peer.principal) in authorizer.super_users

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        """Return the operations on a resource that the caller is authorized for, as a bit field."""
        services, peer = self.services, self.peer
        acls = services.image.acls.index
        return authorized_operations(acls, services.authorizer, peer.principal, peer.host, resource_type, name)
