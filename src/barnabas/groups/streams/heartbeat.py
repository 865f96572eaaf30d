"""Decisions about members of streams groups: heartbeats, leaving, fencing, and the delayed first assignment.

Pure. The steps have Kafka's order, which is the order of the records: the member, the topology, the group epoch, the
target assignment, and the current tasks of the member. A decision pauses where a client decides the size of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from barnabas.config.hash_order import text_hash
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer_decision import Asker, Timer, TimerChange
from barnabas.groups.consumer_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.groups.hash_tables import HashTable, copied, name_order, number_hash, timeline_order
from barnabas.groups.image import Group, group_not_found
from barnabas.groups.streams import sticky_assignor
from barnabas.groups.streams.current_assignment import reconcile
from barnabas.groups.streams.group import Endpoint, Member, MemberState, StreamsGroup
from barnabas.groups.streams.internal_topics import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
    Status,
    StatusDetail,
    configure,
)
from barnabas.groups.streams.records import (
    Record,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from barnabas.groups.streams.settings import StreamsSettings
from barnabas.groups.streams.sticky_assignor import MemberSpecification, SubtopologySpecification
from barnabas.groups.streams.tasks import NO_TARGET, Tasks, task_sets
from barnabas.groups.streams.topology import Topology, topology_of_request
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, result_of
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

R = TypeVar("R")
Response = StreamsGroupHeartbeatResponse
NOT_GIVEN: Final = -1
NOT_VALIDATED: Final = -1


class SoftGroup(NamedTuple):
    """What the coordinator knows of a group beside its records."""

    configured: ConfiguredTopology | None = None
    shutdown_member_id: str | None = None  # it has asked for the shutdown of the application
    endpoint_epoch: int = 0


class StreamsSituation(NamedTuple):
    """Input of a decision beside the group and the request."""

    metadata: MetadataImage
    settings: StreamsSettings
    now_ms: int
    metadata_hash: Callable[[Iterable[str]], int | Slices[int]]  # returns the hash of topics, given by name
    soft: SoftGroup = SoftGroup()
    is_metadata_checked: bool = False  # the hash of the group was already compared with this metadata
    is_delayed: bool = False  # the initial rebalance delay is running


class Outcome(NamedTuple, Generic[R]):
    """The response to a request, and the tasks of the coordinator beside writing the records."""

    response: R
    timers: Sequence[TimerChange] = ()
    soft: SoftGroup | None = None  # None: unchanged
    checked_epoch: int | None = None  # group epoch in which the hash was compared with the metadata
    missing: Mapping[str, InternalTopic] = {}  # internal topics to be created


Decided = Result[Outcome[R]]


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Check the fields of a request. Raises INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY."""
    topology, epoch = request.topology, request.member_epoch
    _refuse(request.instance_id is not None, "Static membership is not yet supported.")
    _refuse(request.task_offsets is not None, "TaskOffsets are not supported yet.")
    _refuse(request.task_end_offsets is not None, "TaskEndOffsets are not supported yet.")
    _refuse(bool(request.warmup_tasks), "WarmupTasks are not supported yet.")
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        _refuse(True, "Regular expressions for source topics are not supported yet.")
    _refuse(not request.member_id.strip(), "MemberId can't be empty.")
    _refuse(not request.group_id.strip(), "GroupId can't be empty.")
    _refuse(request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        _refuse(request.rebalance_timeout_ms == NOT_GIVEN, "RebalanceTimeoutMs must be provided in first request.")
        _refuse(
            request.active_tasks is None or bool(request.active_tasks), "ActiveTasks must be empty when (re-)joining."
        )
        _refuse(
            request.standby_tasks is None or bool(request.standby_tasks),
            "StandbyTasks must be empty when (re-)joining.",
        )
        _refuse(
            request.warmup_tasks is None or bool(request.warmup_tasks), "WarmupTasks must be empty when (re-)joining."
        )
        if topology is None:
            raise _invalid("Topology must be non-null when (re-)joining.")
        for each in topology.subtopologies:
            for info in each.state_changelog_topics:
                if info.partitions:
                    message = (
                        f"Changelog topic {info.name} must have an undefined partition count, but it is set to "
                        f"{info.partitions}."
                    )
                    raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    _refuse(epoch == STATIC_LEAVE_EPOCH, "InstanceId can't be null.")
    _refuse(epoch < STATIC_LEAVE_EPOCH, f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    is_partial = any(tasks is None for tasks in owned) and any(tasks is not None for tasks in owned)
    _refuse(is_partial, "If one task-type is non-null, all must be non-null.")
    _refuse(epoch != JOIN_EPOCH and topology is not None, "Topology can only be provided when (re-)joining.")


def _refuse(is_wrong: bool, message: str) -> None:
    if is_wrong:
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def not_a_streams_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


# --- heartbeats


def heartbeat(
    known: Group | None, request: StreamsGroupHeartbeatRequest, asker: Asker, situation: StreamsSituation
) -> Slices[Decided[Response]]:
    """Handle the heartbeat of a member that joins or stays."""
    is_joining = request.member_epoch == JOIN_EPOCH
    group, records = _group_to_join(known, request.group_id, is_joining=is_joining)
    is_new = group is not known
    settings, soft = situation.settings, situation.soft
    if is_joining and len(group.members) >= settings.max_size:
        message = f"The streams group has reached its maximum capacity of {settings.max_size} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    owned = _owned(request)
    known_member = group.members.get(request.member_id)
    member = Member(request.member_id) if known_member is None and is_joining else group.member(request.member_id)
    _check_epoch(member, request.member_epoch, owned)
    updated = _updated(member, request, asker)
    bump = updated != member
    if bump:
        records.append(member_record(group.group_id, updated))
    topology = _topology(group, request, records)
    statuses = _stale_status(group, updated)
    # The topology and the group epoch.
    metadata_hash, configured, checked = group.metadata_hash, soft.configured, None
    if group.topology is None or configured is None or not situation.is_metadata_checked:
        metadata_hash = yield from result_of(situation.metadata_hash(topology.required_topics))
        bump |= metadata_hash != group.metadata_hash
        if configured is None or configured.topology is not topology or configured.metadata_hash != metadata_hash:
            configured = yield from configure(topology, metadata_hash, situation.metadata.topics)
    validated_epoch = NOT_VALIDATED
    if configured.is_ready:
        validated_epoch = topology.epoch
        _check_tasks(owned, configured.subtopologies or {})
    configs = settings.assignment_configs
    bump |= validated_epoch != group.validated_topology_epoch or configs != group.assignment_configs
    group_epoch = group.group_epoch
    if bump:
        group_epoch += 1
        records.append(epoch_record(group.group_id, group_epoch, metadata_hash, validated_epoch, configs))
    checked = group_epoch
    # The target, and the tasks of the member.
    timers = []
    is_delayed = situation.is_delayed
    if group.is_empty and settings.initial_rebalance_delay_ms and not is_delayed:
        is_delayed = True
        timers.append(TimerChange("", Timer.INITIAL_REBALANCE, settings.initial_rebalance_delay_ms))
    target_epoch, target = group.assignment_epoch, group.target(updated.member_id)
    if is_delayed:
        target = NO_TARGET
        detail = "Assignment delayed due to the configured initial rebalance delay."
        statuses.append(StatusDetail(Status.ASSIGNMENT_DELAYED, detail))
    elif target_epoch < group_epoch and not _may_assign(group, situation):
        detail = "Assignment delayed due to the configured assignment interval."
        statuses.append(StatusDetail(Status.ASSIGNMENT_DELAYED, detail))
    elif target_epoch < group_epoch:
        targets = yield from _assign(group, updated, configured, settings.standby_replicas)
        records += yield from _target_records(group, targets, group_epoch, situation.now_ms)
        target_epoch, target = group_epoch, targets[updated.member_id]
    reconciled = updated
    if not updated.is_reconciled_to(target_epoch):
        reconciled = reconcile(group, updated, target_epoch, target, owned)
    if reconciled != updated:
        records.append(current_record(group.group_id, reconciled))
        is_revoking = reconciled.state is MemberState.UNREVOKED_TASKS
        delay_ms = reconciled.rebalance_timeout_ms if is_revoking else None
        timers.append(TimerChange(reconciled.member_id, Timer.REBALANCE, delay_ms, reconciled.member_epoch))
    timers.append(TimerChange(reconciled.member_id, Timer.SESSION, settings.session_timeout_ms))
    # The response.
    shutdown_id = soft.shutdown_member_id
    if request.shutdown_application and shutdown_id is None:
        shutdown_id = reconciled.member_id
    endpoint_epoch = soft.endpoint_epoch
    response = Response(
        member_id=reconciled.member_id,
        member_epoch=reconciled.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    if is_joining or reconciled.assigned != member.assigned:
        response.active_tasks = _task_ids(reconciled.assigned.active)
        response.standby_tasks = _task_ids(reconciled.assigned.standby)
        response.warmup_tasks = _task_ids(reconciled.assigned.warmup)
        endpoint_epoch += reconciled.user_endpoint is not None
    if endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = yield from _endpoints(
            group, reconciled, configured, situation.metadata.topics
        )
    if not is_new:
        response.endpoint_information_epoch = endpoint_epoch
    if configured.problem is not None:
        statuses.append(configured.problem)
    if shutdown_id is not None:
        detail = (
            f"Streams group member {shutdown_id} encountered a fatal error and requested a shutdown for the entire "
            "application."
        )
        statuses.append(StatusDetail(Status.SHUTDOWN_APPLICATION, detail))
    response.status = [Response.Status(status_code=each.status, status_detail=each.detail) for each in statuses]
    # Kafka keeps nothing but the records of the heartbeat that creates a group.
    changed = None if is_new else SoftGroup(configured, shutdown_id, endpoint_epoch)
    outcome = Outcome(response, timers, changed, None if is_new else checked, configured.missing)
    return Result(records, outcome)


def _group_to_join(known: Group | None, group_id: str, *, is_joining: bool) -> tuple[StreamsGroup, list[Record]]:
    """Return the group, and the records that remove the empty classic group that it replaces."""
    if isinstance(known, StreamsGroup):
        return known, []
    if known is None:
        if not is_joining:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return StreamsGroup(group_id), []
    if is_joining and isinstance(known, ClassicGroup) and known.is_empty:
        return StreamsGroup(group_id), list(known.tombstones(group_id))
    raise not_a_streams_group(group_id)


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(task_sets(active), task_sets(standby), task_sets(warmup))


def _check_epoch(member: Member, epoch: int, owned: Tasks | None) -> None:
    """Check the member epoch of a request. Raises FENCED_MEMBER_EPOCH.

    A member may be one epoch behind if it owns nothing outside of its assignment: it may have missed the last response.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    is_newer = epoch > member.member_epoch
    if not is_newer and epoch == member.previous_member_epoch and owned is not None:
        pairs = zip(owned, member.assigned, strict=True)
        if all(each in has and tasks <= set(has[each]) for given, has in pairs for each, tasks in given.items()):
            return
    message = (
        f"The streams group member has a {'greater' if is_newer else 'smaller'} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _updated(member: Member, request: StreamsGroupHeartbeatRequest, asker: Asker) -> Member:
    """Return the member with the fields of a request. Fields that the request leaves out stay unchanged."""
    endpoint, tags, timeout_ms = request.user_endpoint, request.client_tags, request.rebalance_timeout_ms
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=asker.client_id,
        client_host=asker.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags if tags is None else {tag.key: tag.value for tag in tags},
        user_endpoint=member.user_endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port),
    )


def _topology(group: StreamsGroup, request: StreamsGroupHeartbeatRequest, records: list[Record]) -> Topology:
    """Return the topology of the group. The first member that joins brings it."""
    if request.topology is None:
        if group.topology is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group has no topology")
        return group.topology
    given = topology_of_request(request.topology)
    if given.epoch < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the topology epoch is negative")  # Kafka's code
    if group.topology is None:
        records.append(topology_record(group.group_id, given))
        return given
    if group.topology.epoch <= given.epoch and (
        group.topology.epoch != given.epoch or group.topology.subtopologies != given.subtopologies
    ):
        raise _invalid("Topology updates are not supported yet.")
    return group.topology


def _stale_status(group: StreamsGroup, member: Member) -> list[StatusDetail]:
    if group.topology is None or member.topology_epoch >= group.topology.epoch:
        return []
    detail = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {group.topology.epoch}."
    return [StatusDetail(Status.STALE_TOPOLOGY, detail)]


def _check_tasks(owned: Tasks | None, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    for tasks in owned or ():
        for subtopology_id, partitions in tasks.items():
            known = subtopologies.get(subtopology_id)
            if known is None:
                raise _invalid(f"Subtopology {subtopology_id} does not exist in the topology.")
            for partition in partitions:
                if not 0 <= partition < known.task_count:
                    raise _invalid(
                        f"Task {partition} for subtopology {subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {known.task_count}"
                    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    return [Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in name_order(sorted(tasks))]


# --- the target assignment


def _may_assign(group: StreamsGroup, situation: StreamsSituation) -> bool:
    """Whether the minimum interval since the last assignment is over."""
    last_ms, interval_ms = group.assignment_timestamp_ms, situation.settings.assignment_interval_ms
    return not last_ms or not interval_ms or situation.now_ms >= last_ms + interval_ms


def _assign(
    group: StreamsGroup, updated: Member | None, configured: ConfiguredTopology, standby_replicas: int
) -> Slices[dict[str, Tasks]]:
    """Return the new target of every member, in the order of Kafka's table. Without a ready topology, nobody has tasks."""
    table = HashTable(text_hash, members=timeline_order(group.members))
    if updated is not None:
        table.add(updated.member_id)
    members = {
        member_id: updated if updated is not None and member_id == updated.member_id else group.members[member_id]
        for member_id in table
    }
    if not configured.is_ready:
        return dict.fromkeys(members, NO_TARGET)
    return (
        yield from sticky_assignor.assign(
            {each: MemberSpecification(member.process_id, group.target(each)) for each, member in members.items()},
            {
                each: SubtopologySpecification(subtopology.task_count, subtopology.is_stateful)
                for each, subtopology in (configured.subtopologies or {}).items()
            },
            standby_replicas,
        )
    )


def _target_records(
    group: StreamsGroup, targets: Mapping[str, Tasks], group_epoch: int, now_ms: int
) -> Slices[list[Record]]:
    """Return the records of changed targets, and of the epoch."""
    records = []
    for member_id, tasks in targets.items():
        yield
        if group.target_assignment.get(member_id) != tasks:
            records.append(target_record(group.group_id, member_id, tasks))
    return [*records, target_epoch_record(group.group_id, group_epoch, now_ms)]


def assign_delayed(group: StreamsGroup, situation: StreamsSituation) -> Slices[Decided[None]]:
    """Compute the first assignment after the initial rebalance delay."""
    configured = situation.soft.configured
    if group.is_empty or group.group_epoch <= group.assignment_epoch or group.topology is None:
        return Result((), Outcome(None))
    if configured is None:
        # Kafka skips the assignment here, and the next heartbeat makes it.
        return Result((), Outcome(None))
    if not _may_assign(group, situation):
        return Result((), Outcome(None))
    replicas = int(group.assignment_configs.get("num.standby.replicas", "0"))
    targets = yield from _assign(group, None, configured, replicas)
    records = yield from _target_records(group, targets, group.group_epoch, situation.now_ms)
    return Result(records, Outcome(None))


# --- endpoints


def _endpoints(
    group: StreamsGroup, updated: Member, configured: ConfiguredTopology, topics: Topics
) -> Slices[list[StreamsGroupHeartbeatResponse.EndpointToPartitions]]:
    """Return the partitions of every member that has an endpoint for interactive queries."""
    rows = []
    others = [group.members[each] for each in timeline_order(group.members) if each != updated.member_id]
    for member in (*others, updated):
        yield
        endpoint = member.user_endpoint
        if endpoint is None:
            continue
        rows.append(
            Response.EndpointToPartitions(
                user_endpoint=Response.Endpoint(host=endpoint.host, port=endpoint.port),
                active_partitions=_partitions(member.assigned.active, configured, topics),
                standby_partitions=_partitions(member.assigned.standby, configured, topics),
            )
        )
    return rows


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology, topics: Topics
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    rows = []
    for subtopology_id in name_order(sorted(tasks)):
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        names = [*sorted(subtopology.source_topics), *sorted(subtopology.repartition_source_topics)]
        for name in copied(text_hash, dict.fromkeys(names)):
            topic = topics.get(name)
            if topic is None:
                continue
            partitions: list[Any] = list(HashTable(number_hash, members=sorted(tasks[subtopology_id])))
            if len(topic.partitions) < len(partitions):
                partitions = sorted(partitions)[: len(topic.partitions)]
            rows.append(Response.TopicPartition(topic=name, partitions=partitions))
    return rows


# --- leaving


def leave(known: Group | None, request: StreamsGroupHeartbeatRequest, situation: StreamsSituation) -> Decided[Response]:
    """Handle the heartbeat of a member that leaves."""
    if known is None:
        raise group_not_found(request.group_id)
    if not isinstance(known, StreamsGroup):
        raise not_a_streams_group(request.group_id)
    soft = situation.soft
    member = known.member(request.member_id)
    if request.shutdown_application and soft.shutdown_member_id is None:
        soft = soft._replace(shutdown_member_id=request.member_id)
    response = Response(member_id=request.member_id, member_epoch=request.member_epoch)
    records, outcome, _ = fence(known, member, response)
    return Result(records, outcome._replace(soft=soft))


def fence(group: StreamsGroup, member: Member, response: R) -> Decided[R]:
    """Remove a member."""
    epoch = group.group_epoch + 1
    records = [
        *member_tombstones(group.group_id, member.member_id),
        epoch_record(
            group.group_id, epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        ),
    ]
    timers = [TimerChange(member.member_id, timer) for timer in (Timer.SESSION, Timer.REBALANCE)]
    return Result(records, Outcome(response, timers))


def is_leaving(request: StreamsGroupHeartbeatRequest) -> bool:
    return request.member_epoch == LEAVE_EPOCH
