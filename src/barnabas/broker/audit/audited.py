"""Which requests get a line in the audit log, and what it says.

Its one rule: a line is written for each request that was denied something, that appended records to the metadata log, or
whose API changes something (`CHANGES`), also if it failed; and for failed logins, a few in a second: somebody who may
do nothing must not be able to push other lines out of the files. Producers and consumers at work (`DATA`) have no line, unless
barnabas.audit.log.data is set: their number would hide all others. Values of settings, credentials, tokens and records
are never read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.audit.audit_file import AuditFile
from barnabas.broker.counters import count_errors_in_slices
from barnabas.config.resource_type import ConfigResourceType
from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.audit_line import MAX_ROWS, AuditedResource, AuditLine, Outcome, gap_text, merged
from barnabas.steps import Slices
from barnabas.wire import APIS, ApiKey, ErrorCode, Message, Uuid

if TYPE_CHECKING:
    from barnabas.broker.context import Context, Peer
    from barnabas.broker.surroundings import Surroundings
    from barnabas.config.server_config import ServerConfig

PATH: Final = "barnabas.audit.log.path"
CLUSTER: Final = AuditedResource("CLUSTER", "kafka-cluster")

NO_ERRORS: Final[Mapping[str, int]] = MappingProxyType({})

MAX_FAILED_LOGINS_PER_S: Final = 10

Resources = Iterable[AuditedResource]


class Asked(NamedTuple):
    """The request with which a login failed, as far as its header can be read."""

    api: str
    version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None


def _named(kind: str, rows: Iterable[Any], field: str = "name") -> Resources:
    return (AuditedResource(kind, getattr(each, field) or "") for each in rows)


def _topic(name: str | None, topic_id: Uuid) -> AuditedResource:
    return AuditedResource("TOPIC", name) if name else AuditedResource("TOPIC_ID", str(topic_id))


def _topics_to_delete(request: Any) -> Iterator[AuditedResource]:
    for name in request.topic_names:
        yield AuditedResource("TOPIC", name)
    for topic in request.topics:
        yield _topic(topic.name, topic.topic_id)


def _configs(request: Any) -> Iterator[AuditedResource]:
    known = set(ConfigResourceType)
    for each in request.resources:
        kind = ConfigResourceType(each.resource_type).name if each.resource_type in known else str(each.resource_type)
        yield AuditedResource(
            kind, each.resource_name, tuple(setting.name for setting in islice(each.configs, MAX_ROWS))
        )


def _created_acls(request: Any) -> Iterator[AuditedResource]:
    for each in request.creations:
        text = (
            f"{_word(AclPermissionType, each.permission_type)} {each.principal} from {each.host} to "
            f"{_word(AclOperation, each.operation)} on {_word(ResourceType, each.resource_type)} "
            f"{_word(PatternType, each.resource_pattern_type)} {each.resource_name}"
        )
        yield AuditedResource("ACL", text)


def _deleted_acls(request: Any) -> Iterator[AuditedResource]:
    for each in request.filters:
        text = (
            f"{_word(AclPermissionType, each.permission_type)} {_any(each.principal_filter)} from "
            f"{_any(each.host_filter)} to {_word(AclOperation, each.operation)} on "
            f"{_word(ResourceType, each.resource_type_filter)} {_word(PatternType, each.pattern_type_filter)} "
            f"{_any(each.resource_name_filter)}"
        )
        yield AuditedResource("ACL", text)


def _word(kind: Callable[[int], Any], code: int) -> str:
    return str(kind(code).name)


def _any(text: str | None) -> str:
    return "ANY" if text is None else text


def _scram(request: Any) -> Iterator[AuditedResource]:
    yield from _named("USER", request.deletions)
    yield from _named("USER", request.upsertions)


def _quotas(request: Any) -> Iterator[AuditedResource]:
    for entry in request.entries:
        entity = ", ".join(f"{each.entity_type} {each.entity_name or '<default>'}" for each in entry.entity)
        yield AuditedResource("QUOTA", entity, tuple(op.key for op in islice(entry.ops, MAX_ROWS)))


def _topics_of_markers(request: Any) -> Resources:
    return (AuditedResource("TOPIC", topic.name) for marker in request.markers for topic in marker.topics)


def _topics_of_dirs(request: Any) -> Resources:
    return (AuditedResource("TOPIC", topic.name) for each in request.dirs for topic in each.topics)


def _owner(request: Any) -> Iterator[AuditedResource]:
    if request.owner_principal_name:
        yield AuditedResource("USER", f"{request.owner_principal_type}:{request.owner_principal_name}")


def _nothing(request: Any) -> Resources:
    return ()


def _produced(request: Any) -> Resources:
    return (
        AuditedResource("TOPIC" if each.name else "TOPIC_ID", each.name or str(each.topic_id))
        for each in request.topic_data
    )


def _group(request: Any) -> Iterator[AuditedResource]:
    yield AuditedResource("GROUP", request.group_id)


def _transactional_id(request: Any) -> Iterator[AuditedResource]:
    if request.transactional_id is not None:
        yield AuditedResource("TRANSACTIONAL_ID", request.transactional_id)


def _transactional_ids(request: Any) -> Iterator[AuditedResource]:
    if request.v3_and_below_transactional_id:
        yield AuditedResource("TRANSACTIONAL_ID", request.v3_and_below_transactional_id)
    yield from _named("TRANSACTIONAL_ID", request.transactions, "transactional_id")


CHANGES: Final[Mapping[int, Callable[[Any], Resources]]] = {
    ApiKey.CREATE_TOPICS: lambda request: _named("TOPIC", request.topics),
    ApiKey.DELETE_TOPICS: _topics_to_delete,
    ApiKey.CREATE_PARTITIONS: lambda request: _named("TOPIC", request.topics),
    ApiKey.DELETE_RECORDS: lambda request: _named("TOPIC", request.topics),
    ApiKey.ALTER_CONFIGS: _configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs,
    ApiKey.CREATE_ACLS: _created_acls,
    ApiKey.DELETE_ACLS: _deleted_acls,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _topics_of_dirs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda request: _named("TOPIC", request.topics),
    ApiKey.ELECT_LEADERS: lambda request: _named("TOPIC", request.topic_partitions or (), "topic"),
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _scram,
    ApiKey.UPDATE_FEATURES: lambda request: _named("FEATURE", request.feature_updates, "feature"),
    ApiKey.UNREGISTER_BROKER: lambda request: (AuditedResource("BROKER", str(request.broker_id)),),
    ApiKey.ADD_RAFT_VOTER: lambda request: (AuditedResource("CONTROLLER", str(request.voter_id)),),
    ApiKey.REMOVE_RAFT_VOTER: lambda request: (AuditedResource("CONTROLLER", str(request.voter_id)),),
    ApiKey.DELETE_GROUPS: lambda request: (AuditedResource("GROUP", name) for name in request.groups_names),
    ApiKey.OFFSET_DELETE: _group,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _group,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _group,
    ApiKey.WRITE_TXN_MARKERS: _topics_of_markers,
    ApiKey.CREATE_DELEGATION_TOKEN: _owner,
    ApiKey.RENEW_DELEGATION_TOKEN: _nothing,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _nothing,
}
"""APIs with which someone changes something, and the resources that a request names."""

DATA: Final[Mapping[int, Callable[[Any], Resources]]] = {
    ApiKey.PRODUCE: _produced,
    ApiKey.OFFSET_COMMIT: _group,
    ApiKey.TXN_OFFSET_COMMIT: _group,
    ApiKey.JOIN_GROUP: _group,
    ApiKey.SYNC_GROUP: _group,
    ApiKey.LEAVE_GROUP: _group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _group,
    ApiKey.SHARE_GROUP_HEARTBEAT: _group,
    ApiKey.SHARE_FETCH: _group,
    ApiKey.SHARE_ACKNOWLEDGE: _group,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _group,
    ApiKey.INIT_PRODUCER_ID: _transactional_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _transactional_ids,
    ApiKey.ADD_OFFSETS_TO_TXN: _transactional_id,
    ApiKey.END_TXN: _transactional_id,
}
"""APIs with which producers and consumers write."""

BY_RECORDS: Final = frozenset(
    {
        *(ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.CONTROLLER_REGISTRATION),
        *(ApiKey.ALTER_PARTITION, ApiKey.ASSIGN_REPLICAS_TO_DIRS, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
        ApiKey.DELETE_SHARE_GROUP_STATE,
    }
)
"""APIs of nodes, which have a line if they appended records to the metadata log or were denied."""


class Audit:
    """The audit log of one node."""

    def __init__(self, config: ServerConfig, surroundings: Surroundings) -> None:
        self.cluster_id = ""  # the node sets it once it is known
        self._node_id = config.node_id
        self._now_ms = now_ms = surroundings.now_ms
        audited = {**CHANGES, **DATA} if config.get_bool("barnabas.audit.log.data") else CHANGES
        self._resources = {APIS[key].name: resources for key, resources in audited.items()}
        self._monotonic_ms = surroundings.monotonic_ms
        self._failing_second = -1
        self._failed_logins = 0  # in that second
        self._more_failed_logins = 0
        self.file = AuditFile(
            Path(config.get_str(PATH) or "").absolute(),
            max_bytes=config.get_int("barnabas.audit.log.max.bytes"),
            max_files=config.get_int("barnabas.audit.log.max.files"),
            queue_max_bytes=config.get_int("barnabas.audit.log.queue.max.bytes"),
            gap=lambda dropped: gap_text(now_ms(), self.cluster_id, config.node_id, dropped),
            monotonic_ms=surroundings.monotonic_ms,
        )

    def needs_line(self, context: Context) -> bool:
        return context.api in self._resources or bool(context.denied) or bool(context.appended)

    def answered(self, context: Context, request: Any, response: Message | bytes | None) -> Slices[None]:
        """Write the line of a request. `response` is None if there is none."""
        errors: Counter[int] = Counter()
        if isinstance(response, Message):
            yield from count_errors_in_slices(response, errors)
        resources = self._resources.get(context.api, _nothing)
        yield from self.write(context, resources(request) if request is not None else (), errors)

    def created(self, context: Context, names: Iterable[str], errors: Mapping[int, int]) -> Slices[None]:
        """Write a line about topics that a request has created, though it does not wait for them."""
        yield from self.write(context, (AuditedResource("TOPIC", name) for name in names), errors)

    def left(self, context: Context, request: Any) -> None:
        """Write the line of a request whose client left before the answer. Its change may still be made."""
        if self.needs_line(context):
            named = list(islice(self._resources.get(context.api, _nothing)(request), MAX_ROWS))
            self._put(context, Outcome.UNANSWERED, named)
        context.is_left = True

    def appended_after_leaving(self, context: Context) -> None:
        """Write another line, with the records that are appended now."""
        self._put(context, Outcome.UNANSWERED, ())

    def failed_login(self, peer: Peer, asked: Asked, claimed_name: str, code: ErrorCode) -> None:
        """Write the line of a login that failed, unless there were too many of them in this second."""
        second = self._monotonic_ms() // 1000
        if second != self._failing_second:
            self._failing_second, self._failed_logins = second, 0
        if self._failed_logins >= MAX_FAILED_LOGINS_PER_S:
            self._more_failed_logins += 1
            return
        self._failed_logins += 1
        more, self._more_failed_logins = self._more_failed_logins, 0
        self.file.put(
            AuditLine(
                self._now_ms(),
                self.cluster_id,
                self._node_id,
                str(peer.principal),
                peer.host,
                peer.listener.name,
                asked.api,
                asked.version,
                asked.client_id,
                asked.correlation_id,
                Outcome.DENIED,
                [AuditedResource("USER", claimed_name)] if claimed_name else (),
                errors={code.name: 1},
                more_failed_logins=more,
            ).text()
        )

    def write(self, context: Context, resources: Resources, errors: Mapping[int, int]) -> Slices[None]:
        """Write a line about a request: the resources that it names, and the error codes of its response."""
        named: list[AuditedResource] = []
        more = 0
        for each in resources:
            if len(named) < MAX_ROWS:
                named.append(each)
            else:
                more += 1
            yield
        outcome = _outcome(context, sum(errors.values()), len(named) + more)
        self._put(context, outcome, named, more, {ErrorCode(code).name: count for code, count in errors.items()})

    def _put(
        self,
        context: Context,
        outcome: Outcome,
        named: Sequence[AuditedResource],
        more: int = 0,
        errors: Mapping[str, int] = NO_ERRORS,
    ) -> None:
        peer = context.peer
        self.file.put(
            AuditLine(
                self._now_ms(),
                self.cluster_id,
                self._node_id,
                str(peer.principal),
                peer.host,
                peer.listener.name,
                context.api,
                context.version,
                context.client_id,
                context.correlation_id,
                outcome,
                named,
                more,
                errors,
                context.denied,
                context.more_denied,
                merged(context.appended),
            ).text()
        )
        context.appended = ()


def _outcome(context: Context, errors: int, resources: int) -> Outcome:
    if not errors and not context.denied:
        return Outcome.DONE
    if context.appended or (errors and errors < resources):
        return Outcome.PARTIAL
    return Outcome.DENIED if context.denied else Outcome.FAILED
