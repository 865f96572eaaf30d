"""The actions of kafka-reassign-partitions and the lines they print; `command` has the options.

Its one rule: the lines are Kafka's, with all their oddities. A `ToolError` ends the tool with its line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Protocol

from barnabas.cli.kafka.java_text import exception_text, hash_order, string_hash
from barnabas.client.admin.log_dirs import LogDirs, Replica, ReplicaLogDir
from barnabas.client.admin.part import checked, errors
from barnabas.client.admin.reassignments import PartitionReassignment, Reassignments
from barnabas.client.cluster import Cluster
from barnabas.client.state import ClusterState
from barnabas.operations.partitions import Key
from barnabas.operations.reassignments import throttles
from barnabas.operations.reassignments.files import (
    NotJsonError,
    check_executable,
    duplicates,
    format_reassignment,
    parse_reassignment,
    parse_topics,
)
from barnabas.wire.errors import ErrorCode, KafkaError


class Print(Protocol):
    """Function that prints a line."""

    def __call__(self, line: str, end: str = "\n") -> None: ...


_RETRY_S = 0.1
_THERE_IS_ONE = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
_RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
_NOT_ALL_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without "
    "rack information."
)


class ToolError(Exception):
    """An error that ends the tool with this line."""


# --- list


async def list_reassignments(cluster: Cluster, out: Print) -> None:
    ongoing = await Reassignments(cluster).list_partition_reassignments()
    if not ongoing:
        out("No partition reassignments found.")
        return
    out("Current partition reassignments:")
    for key, each in ongoing.items():
        adding = f" adding: {_ids(each.adding_replicas)}." if each.adding_replicas else ""
        removing = f" removing: {_ids(each.removing_replicas)}." if each.removing_replicas else ""
        out(f"{_name(key)}: replicas: {_ids(each.replicas)}.{adding}{removing}")


# --- generate


async def generate(
    cluster: Cluster, topics_json: str, broker_list: str, rack_aware: bool, out: Print, random: Random
) -> None:
    from barnabas.controller.placement import UsableBroker, place  # imports the metadata image

    broker_ids = _broker_ids(broker_list)
    if twice := duplicates(broker_ids):
        raise ToolError(f"Error: Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    try:
        topics = parse_topics(topics_json)
    except NotJsonError:
        raise ToolError("Error: The input string is not a valid JSON") from None
    state = await _described(cluster, topics)
    current = {(name, index): each.replicas for name in topics for index, each in state.topics[name].partitions.items()}
    log_dirs = await _log_dirs(cluster, state, current)
    usable = [
        UsableBroker(node.id, node.rack if rack_aware else None)
        for node in state.nodes.values()
        if node.id in broker_ids
    ]
    rackless = sum(broker.rack is None for broker in usable)
    if rack_aware and rackless not in (0, len(usable)):
        raise ToolError(f"Error: {_NOT_ALL_RACKS}")
    proposed: dict[Key, Sequence[int]] = {}
    for name in topics:
        partitions = state.topics[name].partitions
        try:
            placed = place(usable, len(partitions), len(partitions[0].replicas), random)
        except KafkaError as error:
            raise ToolError(f"Error: {error.message}") from None
        proposed |= {(name, index): replicas for index, replicas in enumerate(placed)}
    out(f"Current partition replica assignment\n{format_reassignment(current, log_dirs)}\n")
    out(f"Proposed partition reassignment configuration\n{format_reassignment(proposed)}")


def _broker_ids(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        wrong = next(each for each in text.split(",") if not each.lstrip("+-").isdigit())
        under = " under radix 10" if not wrong else ""
        raise ToolError(f'Error: For input string: "{wrong}"{under}') from None


# --- execute


async def execute(
    cluster: Cluster,
    text: str,
    out: Print,
    *,
    additional: bool,
    throttle: int,
    log_dirs_throttle: int,
    timeout_ms: int,
    disallow_replication_factor_change: bool,
) -> None:
    reassignment = parse_reassignment(text)
    check_executable(reassignment)
    proposed = reassignment.targets
    part = Reassignments(cluster)
    ongoing = await part.list_partition_reassignments()
    if ongoing and not additional:
        raise ToolError(_THERE_IS_ONE)
    _check_brokers(cluster.state, proposed.values())
    state = await _described(cluster, {topic for topic, _ in proposed})
    current = _current(state, proposed)
    saved = format_reassignment(current, await _log_dirs(cluster, state, current))
    out(f"Current partition replica assignment\n\n{saved}\n")
    out("Save this to use as the --reassignment-json-file option during rollback")
    if throttle >= 0 or log_dirs_throttle >= 0:
        out(_RUN_VERIFY)
    if throttle >= 0:
        await throttles.throttle(cluster, throttles.proposed_moves(ongoing, proposed, current), throttle)
        out(f"The inter-broker throttle limit was set to {throttle} B/s")
    if log_dirs_throttle >= 0:
        moving = {replica.broker_id for replica in reassignment.log_dirs}
        await throttles.throttle_log_dirs(cluster, moving, log_dirs_throttle)
        out(f"The replica-alter-dir throttle limit was set to {log_dirs_throttle} B/s")
    results = await part.alter_partition_reassignments(
        proposed, allow_replication_factor_change=not disallow_replication_factor_change
    )
    if failed := errors(results):
        raise ToolError("Error reassigning partition(s):\n" + _failures(failed))
    out(f"Successfully started partition reassignment{_s(proposed)} for {','.join(map(_name, sorted(proposed)))}")
    if reassignment.log_dirs:
        await _move(cluster, reassignment.log_dirs, timeout_ms, out)


def _check_brokers(state: ClusterState, proposed: Iterable[Sequence[int]]) -> None:
    wanted = hash_order([each for replicas in proposed for each in replicas], int)
    unknown = next((each for each in wanted if each not in state.nodes), None)
    if unknown is not None:
        raise ToolError(f"Error: Unknown broker id {unknown}")


async def _move(cluster: Cluster, moves: Mapping[Replica, str], timeout_ms: int, out: Print) -> None:
    """Move replicas between log dirs. Replicas that do not exist yet are retried until the timeout. Raises ToolError."""
    pending = dict(moves)
    started = time.monotonic()
    while True:
        results = await LogDirs(cluster).alter_replica_log_dirs(pending)
        for replica in sorted(results, key=_by_broker):
            result = results[replica]
            if result is None:
                out(
                    f"Successfully started moving log directory to {pending[replica]} for replica "
                    f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
                )
                del pending[replica]
            elif result.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise ToolError(f"Error: Failed to alter dir for {replica}")
        if not pending:
            return
        if (time.monotonic() - started) * 1000 >= timeout_ms:
            names = ",".join(map(str, sorted(pending, key=_by_broker)))
            raise ToolError(f"Timed out before log directory move{_s(pending)} could be started for: {names}")
        await asyncio.sleep(_RETRY_S)


# --- verify


async def verify(cluster: Cluster, text: str, out: Print, *, preserve_throttles: bool) -> None:
    reassignment = parse_reassignment(text)
    ongoing = await Reassignments(cluster).list_partition_reassignments()
    out("Status of partition reassignment:")
    missing = {topic for topic, index in reassignment.targets if (topic, index) not in ongoing}
    state = await cluster.metadata(missing)
    for key, target in sorted(reassignment.targets.items()):
        out(_partition_state(key, target, ongoing, state))
    moves = await LogDirs(cluster).describe_replica_log_dirs(reassignment.log_dirs)
    lines = {each: _move_state(each, path, moves[each]) for each, path in reassignment.log_dirs.items()}
    out("\n".join(lines[each] for each in sorted(lines, key=_by_broker)))
    is_moving = any(isinstance(each, ReplicaLogDir) and each.future_log_dir is not None for each in moves.values())
    if not ongoing and not is_moving and not preserve_throttles:
        await _clear_throttles(cluster, reassignment.partitions, out)


def _partition_state(
    key: Key, target: Sequence[int], ongoing: Mapping[Key, PartitionReassignment], state: ClusterState
) -> str:
    if key in ongoing:
        return f"Reassignment of partition {_name(key)} is still in progress."
    topic = state.topics.get(key[0])
    if topic is None and state.errors.get(key[0]) not in (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        code = state.errors[key[0]]
        raise ToolError(f"Error: {exception_text(KafkaError(code, code.message))}")
    count = 0 if topic is None else len(topic.partitions)
    if topic is not None and key[1] == count:
        raise ToolError(f"Error: Index {key[1]} out of bounds for length {count}")
    current = () if topic is None or key[1] > count else topic.partitions[key[1]].replicas
    if current == tuple(target):
        return f"Reassignment of partition {_name(key)} is completed."
    return (
        f"There is no active reassignment of partition {_name(key)}, but replica set is {_ids(current)} rather than "
        f"{_ids(target)}."
    )


def _move_state(replica: Replica, target: str, found: ReplicaLogDir | KafkaError) -> str:
    if isinstance(found, KafkaError):
        raise ToolError(f"Error: {exception_text(found)}")
    name = f"{replica.topic}-{replica.partition}"
    if found.log_dir is None:
        return (
            f"Partition {name} is not found in any live log dir on broker {replica.broker_id}. There is likely an offline "
            "log directory on the broker."
        )
    if found.future_log_dir is None:
        if found.log_dir == target:
            return f"Reassignment of replica {replica} completed successfully."
        return f"Partition {name} on broker {replica.broker_id} is not being moved from log dir {found.log_dir} to {target}."
    if found.future_log_dir == target:
        return f"Reassignment of replica {replica} is still in progress."
    return (
        f"Partition {name} on broker {replica.broker_id} is being moved to log dir {found.future_log_dir} instead of "
        f"{target}."
    )


# --- cancel


async def cancel(cluster: Cluster, text: str, out: Print, *, preserve_throttles: bool, timeout_ms: int) -> None:
    reassignment = parse_reassignment(text)
    part = Reassignments(cluster)
    ongoing = await part.list_partition_reassignments(reassignment.targets)
    if ongoing:
        if failed := errors(await part.alter_partition_reassignments(dict.fromkeys(ongoing))):
            raise ToolError(f"Error cancelling partition reassignment{_s(failed)} for:\n{_failures(failed)}")
        out(f"Successfully cancelled partition reassignment{_s(ongoing)} for: {','.join(map(_name, sorted(ongoing)))}")
    else:
        out("None of the specified partition reassignments are active.")
    found = checked(await LogDirs(cluster).describe_replica_log_dirs(reassignment.log_dirs))
    moving = {
        replica: where.log_dir
        for replica, where in found.items()
        if where.log_dir is not None and where.future_log_dir is not None
    }
    if moving:
        await _move(cluster, moving, timeout_ms, out)
    else:
        out("None of the specified partition moves are active.", end="")  # as Kafka's tool, without a line end
    if not preserve_throttles:
        await _clear_throttles(cluster, reassignment.partitions, out)


async def _clear_throttles(cluster: Cluster, partitions: Sequence[tuple[Key, Sequence[int]]], out: Print) -> None:
    targets = [each for _, replicas in partitions for each in replicas]
    brokers = hash_order([*hash_order(cluster.state.nodes, int), *targets], int)
    out(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(brokers)}")
    await throttles.clear_brokers(cluster, brokers)
    topics = hash_order([topic for (topic, _), _ in partitions], string_hash)
    out(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    await throttles.clear_topics(cluster, topics)


# --- shared by several actions


async def _described(cluster: Cluster, topics: Iterable[str]) -> ClusterState:
    """Describe topics. Raises KafkaError if one does not exist."""
    names = list(topics)
    state = await cluster.metadata(names)
    for name in names:
        code = state.errors.get(name)
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(code, f"Topic {name} not found.")
        if code is not None:
            raise KafkaError(code, code.message)
    return state


def _current(state: ClusterState, wanted: Iterable[Key]) -> dict[Key, tuple[int, ...]]:
    found = {key: state.partition(*key) for key in wanted}
    if missing := ", ".join(_name(key) for key, each in found.items() if each is None):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {missing}")
    return {key: each.replicas for key, each in found.items() if each is not None}


async def _log_dirs(cluster: Cluster, state: ClusterState, current: Mapping[Key, Sequence[int]]) -> dict[Replica, str]:
    """Return the log dirs of replicas on running brokers."""
    replicas = [Replica(*key, each) for key, ids in current.items() for each in ids if each in state.nodes]
    found = checked(await LogDirs(cluster).describe_replica_log_dirs(replicas))
    return {replica: where.log_dir for replica, where in found.items() if where.log_dir is not None}


def _failures(failed: Mapping[Key, KafkaError]) -> str:
    return "\n".join(f"{_name(key)}: {error.message}" for key, error in sorted(failed.items()))


def _by_broker(replica: Replica) -> tuple[int, str, int]:
    return (replica.broker_id, replica.topic, replica.partition)


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))


def _s(items: Sequence[object] | Mapping[Key, object] | Mapping[Replica, object]) -> str:
    return "" if len(items) == 1 else "s"
