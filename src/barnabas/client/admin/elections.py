"""Leader elections (API 43), preferred or unclean.

A preferred election makes the first replica of a partition its leader if it is in sync; nothing is lost. An unclean election
makes an out-of-sync replica the leader if no in-sync one is left; the records it lacks are lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.routing import controller
from barnabas.client.state import NO_LEADER
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

_FIRST_WITH_UNCLEAN = 1
_PARTITIONS_PER_REQUEST = 5000  # controllers allow 10,000 records per operation


class ElectionType(IntEnum):
    """Type of an election, by its number in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class Elections(Part):
    """Leader elections."""

    async def elect_leaders(
        self,
        election_type: ElectionType = ElectionType.PREFERRED,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> dict[tuple[str, int], KafkaError | None]:
        """Elect the leaders of these partitions. The result is None if a leader was elected, ELECTION_NOT_NEEDED if none was
        needed.

        Without `partitions`, all are elected, and only those that needed an election are in the result.
        """
        keys = None if partitions is None else list(dict.fromkeys(partitions))
        if keys is not None and not keys:
            return {}

        async def ask() -> dict[tuple[str, int], KafkaError | None]:
            if keys is None:
                return await self._elect(election_type, None, timeout_ms)
            results: dict[tuple[str, int], KafkaError | None] = {}
            for piece in pieces(keys, _PARTITIONS_PER_REQUEST):
                results |= await self._elect(election_type, piece, timeout_ms)
            return results

        async def look(late: list[tuple[str, int]]) -> dict[tuple[str, int], bool]:
            state = await self.cluster.metadata({topic for topic, _ in late}, timeout_ms=timeout_ms)
            found = {key: state.partition(*key) for key in late}
            if election_type is ElectionType.UNCLEAN:
                return {key: each is not None and each.leader_id != NO_LEADER for key, each in found.items()}
            return {key: each is not None and each.leader_id == each.replicas[0] for key, each in found.items()}

        if keys is None:
            return await ask()
        return await change(keys, ask, look, lambda key: f"electing the leader of {key[0]}-{key[1]}")

    async def _elect(
        self, election_type: ElectionType, keys: list[tuple[str, int]] | None, timeout_ms: float | None
    ) -> dict[tuple[str, int], KafkaError | None]:
        topics = None
        if keys is not None:
            by_topic: dict[str, list[int]] = defaultdict(list)
            for topic, index in keys:
                by_topic[topic].append(index)
            of = ElectLeadersRequest.TopicPartitions
            topics = [of(topic=name, partitions=indexes) for name, indexes in by_topic.items()]
        longest_ms = self.cluster.settings.get_int("request.timeout.ms")
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=topics,
            timeout_ms=longest_ms if timeout_ms is None else int(min(timeout_ms, longest_ms)),
        )
        response: ElectLeadersResponse = await self.cluster.call(
            request,
            to=controller(),
            least_version=_FIRST_WITH_UNCLEAN if election_type is ElectionType.UNCLEAN else 0,
            feature="unclean elections",
            timeout_ms=timeout_ms,
        )
        return {
            (topic.topic, row.partition_id): failed(row.error_code, row.error_message)
            for topic in response.replica_election_results
            for row in topic.partition_result
        }
