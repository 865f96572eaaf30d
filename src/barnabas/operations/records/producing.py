"""One record to write, as a `Proposal`."""

from __future__ import annotations

from collections.abc import Sized

from barnabas.batches import Headers
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.client.records import RecordMetadata
from barnabas.operations.proposal import Proposal
from barnabas.operations.topics.changes import partition_count


async def propose_record(
    cluster: Cluster,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Headers = (),
    partition: int | None = None,
) -> Proposal[str, RecordMetadata]:
    """Propose to write a record; without a partition, the producer chooses one. Raises OperationError for an unknown topic."""
    await partition_count(cluster, topic)
    where = "the partition of its key" if partition is None else f"partition {partition}"
    parts = ["no key" if key is None else f"a key of {_count(key, 'byte')}"]
    parts.append(
        "no value, which deletes the key where logs are compacted"
        if value is None
        else f"a value of {_count(value, 'byte')}"
    )
    if headers:
        parts.append(_count(headers, "header"))

    async def carry_out() -> dict[str, RecordMetadata]:
        async with Producer(cluster, {"acks": "all"}) as producer:
            found = await producer.send_and_wait(topic, value, key, partition=partition, headers=headers)
        return {f"{found.topic}-{found.partition}": found}

    return Proposal({}, (f"write a record to {topic}, {where}: {', '.join(parts)}",), carry_out=carry_out)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"
