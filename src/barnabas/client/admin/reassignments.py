"""Partition reassignments: move replicas to other brokers (APIs 45 and 46).

Its one rule: an accepted reassignment has only started. New replicas copy from the leader, and old ones are removed when the
new ones are in sync; until then `list_partition_reassignments` lists it. `barnabas.client.reassignment_plan` plans the moves.

    await reassignments.alter_partition_reassignments({("orders", 0): (1, 2, 3), ("orders", 1): None})    # None cancels
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.routing import controller
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_PARTITIONS_PER_REQUEST = 5000  # controllers allow 10,000 records per operation


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A reassignment in progress. `replicas` has all replicas, including those being added and removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """Replicas after the reassignment."""
        return tuple(each for each in self.replicas if each not in self.removing_replicas)


class Reassignments(Part):
    """Reassignments of partitions."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[tuple[str, int], Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[tuple[str, int], KafkaError | None]:
        """Start moving partitions to these replicas, the preferred leader first. None cancels a reassignment in progress.

        `allow_replication_factor_change=False` needs Kafka 4.1.
        """

        async def ask() -> dict[tuple[str, int], KafkaError | None]:
            results: dict[tuple[str, int], KafkaError | None] = {}
            for piece in pieces(targets.items(), _PARTITIONS_PER_REQUEST):
                try:
                    results |= await self._reassign(dict(piece), allow_replication_factor_change, timeout_ms)
                except KafkaError as error:
                    if not results:
                        raise
                    results |= dict.fromkeys(dict(piece), error)  # pieces accepted before stay accepted
            return results

        async def look(late: list[tuple[str, int]]) -> dict[tuple[str, int], bool]:
            ongoing = await self.list_partition_reassignments(late, timeout_ms=timeout_ms)
            state = await self.cluster.metadata({topic for topic, _ in late}, timeout_ms=timeout_ms)
            found = {}
            for key in late:
                target, current = targets[key], state.partition(*key)
                if target is None:
                    found[key] = key not in ongoing
                elif key in ongoing:
                    found[key] = set(ongoing[key].target_replicas) == set(target)
                else:
                    found[key] = current is not None and current.replicas == tuple(target)
            return found

        return await change(list(targets), ask, look, lambda key: f"reassigning {key[0]}-{key[1]}")

    async def list_partition_reassignments(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_ms: float | None = None
    ) -> dict[tuple[str, int], PartitionReassignment]:
        """Return the reassignments in progress, of all partitions or of these, by topic and partition."""
        of = ListPartitionReassignmentsRequest
        topics = None
        if partitions is not None:
            topics = [
                of.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
                for name, indexes in _by_topic(partitions).items()
            ]
        response: ListPartitionReassignmentsResponse = await self.cluster.call(
            of(topics=topics, timeout_ms=self._server_timeout_ms(timeout_ms)), to=controller(), timeout_ms=timeout_ms
        )
        return {
            (topic.name, row.partition_index): PartitionReassignment(
                tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
            )
            for topic in sorted(response.topics, key=lambda each: each.name)
            for row in sorted(topic.partitions, key=lambda each: each.partition_index)
        }

    async def _reassign(
        self,
        targets: Mapping[tuple[str, int], Sequence[int] | None],
        allow_replication_factor_change: bool,
        timeout_ms: float | None,
    ) -> dict[tuple[str, int], KafkaError | None]:
        of = AlterPartitionReassignmentsRequest
        topics = [
            of.ReassignableTopic(
                name=name,
                partitions=[
                    of.ReassignablePartition(
                        partition_index=index,
                        replicas=None if (replicas := targets[name, index]) is None else list(replicas),
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(targets).items()
        ]
        request = of(
            topics=topics,
            timeout_ms=self._server_timeout_ms(timeout_ms),
            allow_replication_factor_change=allow_replication_factor_change,
        )
        response = await self.cluster.call(
            request,
            to=controller(),
            least_version=0 if allow_replication_factor_change else 1,
            feature="allow_replication_factor_change=False",
            timeout_ms=timeout_ms,
        )
        answered = {
            (topic.name, row.partition_index): failed(row.error_code, row.error_message)
            for topic in response.responses
            for row in topic.partitions
        }
        silent = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has no row for it")
        return {key: answered.get(key, silent) for key in targets}

    def _server_timeout_ms(self, timeout_ms: float | None) -> int:
        """Return the controller's timeout, which is at most the client's timeout."""
        longest_ms = self.cluster.settings.get_int("request.timeout.ms")
        return longest_ms if timeout_ms is None else int(min(timeout_ms, longest_ms))


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, index in dict.fromkeys(partitions):
        topics[topic].append(index)
    return topics
