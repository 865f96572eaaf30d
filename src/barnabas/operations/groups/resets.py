"""Resets of a group's offsets: check that it is empty, find the partitions, compute the new offsets, propose the change.

Its one rule: an obstacle is an `OperationError` that names the group, the topic or the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.groups import any_type
from barnabas.operations.groups.positions import logs_of
from barnabas.operations.groups.reset_plan import Log, NoOffsetError, Planned, Reset, Rule, plan
from barnabas.operations.partitions import Selection, find_partitions
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import ErrorCode, KafkaError

_HOW_TO_BEGIN_ANEW = (
    "to begin anew, reset with kafka-streams-groups --delete-all-internal-topics, and delete the state directories"
)


class OffsetChange(NamedTuple):
    """The old and the new offset of a partition, and the error if the change failed."""

    old: int | None
    new: int
    error: KafkaError | None = None


async def propose_reset(
    cluster: Cluster,
    group_id: str,
    reset: Reset,
    selections: Sequence[Selection],
    file: Mapping[TopicPartition, int] | None = None,
) -> Proposal[TopicPartition, OffsetChange]:
    """Propose new offsets for the selected partitions; without a selection, for those in the file or with an offset.

    Of a streams group, those are the partitions of its source topics: it fills its repartition topics itself.
    Raises OperationError if the group has members or nothing is to be reset.
    """
    kind = await require_empty(cluster, group_id)
    committed = await committed_offsets(cluster, group_id, kind)
    hints: tuple[str, ...] = ()
    if selections:
        partitions = [TopicPartition(*key) for key in (await find_partitions(cluster, selections)).keys]
    elif file is not None:
        partitions = sorted(file)
    elif kind == any_type.STREAMS_TYPE:
        sources = await any_type.source_topics(cluster, group_id)
        partitions = sorted(each for each in committed if each.topic in sources)
        hints = ("the internal topics and the state of the application stay as they are", _HOW_TO_BEGIN_ANEW)
    else:
        partitions = sorted(committed)
    if not partitions:
        raise OperationError("has no offsets: there is nothing to reset", resource=f"group {group_id}")
    planned, notes = await planned_offsets(cluster, reset, partitions, committed, file)
    expected = {each: OffsetChange(committed.get(each), new.offset) for each, new in planned.items()}

    async def carry_out() -> dict[TopicPartition, OffsetChange]:
        wanted = {each: change.new for each, change in expected.items()}
        results = await any_type.set_offsets(cluster, group_id, wanted, kind)
        return {each: change._replace(error=results[each]) for each, change in expected.items()}

    return Proposal(
        expected,
        tuple(
            f"set the offset of {group_id} in {each} from {'none' if old is None else old} to {new}"
            for each, (old, new, _) in expected.items()
        ),
        (*notes, *hints),
        question=f"Set {len(planned)} offset{'' if len(planned) == 1 else 's'} of group {group_id}?",
        carry_out=carry_out,
    )


async def require_empty(cluster: Cluster, group_id: str) -> str | None:
    """Return the type of the group. Raises OperationError if it has members. A group that does not exist has none."""
    types = await any_type.types_of(cluster, [group_id])
    found = (await any_type.describe(cluster, [group_id], types))[group_id]
    if isinstance(found, KafkaError):
        if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise refused(found, f"group {group_id}")
    elif found.members or found.state not in ("Empty", "Dead"):
        count = len(found.members)
        raise OperationError(
            f"is {found.state}, with {count} member{'' if count == 1 else 's'}; offsets of a group can be set when it is empty",
            resource=f"group {group_id}",
            code=ErrorCode.NON_EMPTY_GROUP,
        )
    return types.get(group_id)


async def committed_offsets(cluster: Cluster, group_id: str, type: str | None = None) -> dict[TopicPartition, int]:
    """Return the committed offsets of a group, or the start offsets of a share group. Raises OperationError."""
    found = (await any_type.offsets_of(cluster, [group_id], {group_id: type}))[group_id]
    if isinstance(found, KafkaError):
        if type is not None and found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise refused(found, f"group {group_id}")
    return {key: value.offset for key, value in found.offsets.items() if not isinstance(value, KafkaError)}


async def planned_offsets(
    cluster: Cluster,
    reset: Reset,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, int],
    file: Mapping[TopicPartition, int] | None,
) -> tuple[dict[TopicPartition, Planned], tuple[str, ...]]:
    """Compute the new offsets, and a note for each that differs from the requested one. Raises OperationError."""
    found = await logs_of(cluster, partitions, reset.value if reset.rule is Rule.TIME else None)
    logs: dict[TopicPartition, Log] = {}
    for each, log in found.items():
        if isinstance(log, KafkaError):
            raise refused(log, str(each))
        logs[each] = log
    try:
        planned = plan(reset, logs, committed, file)
    except NoOffsetError as error:
        raise OperationError(str(error), advice="name the topics that have one, or use another rule") from None
    notes = []
    for each, new in planned.items():
        if new.instead_of is not None:
            side = "before the first" if new.instead_of < new.offset else "after the last"
            notes.append(f"{each}: offset {new.instead_of} is {side} one; the nearest is {new.offset}")
        elif reset.rule is Rule.TIME and logs[each].at_time is None:
            notes.append(f"{each}: there is no record at or after that time; {new.offset} is the end")
    return planned, tuple(notes)
