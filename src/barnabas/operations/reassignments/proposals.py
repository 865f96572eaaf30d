"""Reassignments as proposals: start planned moves, cancel ongoing ones, throttle them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.client.admin.reassignments import PartitionReassignment, Reassignments
from barnabas.client.cluster import Cluster
from barnabas.operations.errors import OperationError
from barnabas.operations.partitions import Key
from barnabas.operations.proposal import Proposal
from barnabas.operations.quantities import bytes_text
from barnabas.operations.reassignments import throttles
from barnabas.operations.reassignments.execution import begin, unthrottle
from barnabas.operations.reassignments.plan import PlannedMoves
from barnabas.wire.errors import KafkaError


def propose_moves(
    cluster: Cluster, planned: PlannedMoves, throttle: int | None = None
) -> Proposal[Key, KafkaError | None]:
    """Propose to start the moves of a plan, with at most `throttle` bytes per second on each broker involved."""
    made = planned.plan
    notes = list(planned.warnings)
    if planned.left_out:
        notes.append(f"{len(planned.left_out)} partitions are being reassigned now, and are left out")
    if not made.targets:
        return Proposal({}, notes=(*notes, "nothing to move"))
    known = [made.bytes_to_copy(key) for key in made.targets]
    total = sum(size for size in known if size is not None)
    unknown = sum(size is None for size in known)
    notes.append(
        f"{bytes_text(total)} have to be copied" + (f"; {unknown} partitions have an unknown size" if unknown else "")
    )
    if throttle is not None:
        notes.append(f"throttled to {bytes_text(throttle)}/s on each broker involved")

    async def carry_out() -> dict[Key, KafkaError | None]:
        return await begin(cluster, made.targets, made.current, throttle)

    return Proposal(
        dict.fromkeys(made.targets),
        tuple(
            f"move {topic}-{index} from {_ids(made.current[topic, index])} to {_ids(replicas)}"
            for (topic, index), replicas in made.targets.items()
        ),
        tuple(notes),
        question="Start moving replicas?",
        carry_out=carry_out,
    )


async def propose_cancel(cluster: Cluster, keys: Sequence[Key] | None) -> Proposal[Key, KafkaError | None]:
    """Propose to cancel these reassignments, or all."""
    part = Reassignments(cluster)
    ongoing = await part.list_partition_reassignments(keys)
    if not ongoing:
        return Proposal({}, notes=("nothing to cancel: none of the partitions is being reassigned",))

    async def carry_out() -> dict[Key, KafkaError | None]:
        return await part.alter_partition_reassignments(dict.fromkeys(ongoing))

    return Proposal(
        dict.fromkeys(ongoing),
        tuple(cancel_sentence(key, each) for key, each in ongoing.items()),
        question="Cancel and discard the data copied so far?",
        carry_out=carry_out,
    )


def cancel_sentence(key: Key, each: PartitionReassignment) -> str:
    parts = [("not adding", each.adding_replicas), ("not removing", each.removing_replicas)]
    said = ", ".join(f"{what} {','.join(map(str, ids))}" for what, ids in parts if ids)
    return f"cancel the reassignment of {key[0]}-{key[1]}: {said}"


async def propose_throttle(cluster: Cluster, rate: int | None) -> Proposal[str, None]:
    """Propose to throttle the ongoing reassignments, or with None to clear all throttles. Raises OperationError."""
    if rate is None:
        topics = await throttles.throttled_topics(cluster, sorted((await cluster.metadata(None)).topics))
        brokers = ", ".join(map(str, sorted(cluster.state.nodes)))
        step = f"clear the throttles of topics ({', '.join(topics) or 'none'}) and brokers {brokers}"

        async def clear() -> Mapping[str, None]:
            await unthrottle(cluster, topics)
            return {"throttles": None}

        return Proposal({"throttles": None}, (step,), carry_out=clear)
    ongoing = await Reassignments(cluster).list_partition_reassignments()
    if not ongoing:
        raise OperationError("nothing is being reassigned", advice="pass --throttle to: barnabas reassign run")
    moves = throttles.proposed_moves(ongoing, {}, {})
    brokers = ", ".join(map(str, throttles.brokers_of(moves.values())))

    async def throttle() -> Mapping[str, None]:
        await throttles.throttle(cluster, moves, rate)
        return {"throttles": None}

    return Proposal(
        {"throttles": None},
        (f"throttle {len(ongoing)} reassignments to {bytes_text(rate)}/s on brokers {brokers}",),
        carry_out=throttle,
    )


def _ids(replicas: Sequence[int]) -> str:
    return f"[{', '.join(map(str, replicas))}]"
