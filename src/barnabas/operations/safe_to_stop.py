"""Check that a broker can be stopped safely: find the partitions and the quorum that would be affected.

Its one rule: only changes for the worse count. A partition that is already offline does not count, nor does one without an
in-sync replica on this broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.errors import OperationError
from barnabas.operations.topics.facts import MIN_ISR, topic_settings
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import Partition, Topic


class Effect(Enum):
    """The effect on a partition, worst first."""

    OFFLINE = "offline"
    BELOW_MIN_ISR = "belowMinIsr"


class Affected(NamedTuple):
    """An affected partition, and the effect."""

    topic: str
    partition: Partition
    effect: Effect
    min_insync_replicas: int

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition.partition_index}"
        if self.effect is Effect.OFFLINE:
            return f"{name} would be offline: no other replica is in sync"
        left = len(self.partition.isr) - 1
        return f"{name} would refuse acks=all: {left} of {self.min_insync_replicas} replicas needed would be in sync"


def affected_by(broker_id: int, topics: Iterable[Topic], min_insync_replicas: Mapping[str, int]) -> Iterator[Affected]:
    """Yield the partitions that would be offline or below min.insync.replicas, by topic and partition. Pure."""
    for topic in sorted(topics, key=lambda each: each.name):
        least = min_insync_replicas.get(topic.name, 1)
        for partition in topic.partitions.values():
            if broker_id not in partition.isr or partition.leader_id < 0:
                continue
            left = len(partition.isr) - 1
            if left == 0:
                yield Affected(topic.name, partition, Effect.OFFLINE, least)
            elif left < least:
                yield Affected(topic.name, partition, Effect.BELOW_MIN_ISR, least)


class StopReport(NamedTuple):
    """The affected partitions, the effect on the quorum (None: none), and warnings about what is unknown."""

    affected: list[Affected]
    quorum_loss: str | None
    voters: list[int]
    is_fenced: bool
    warnings: list[str]

    @property
    def is_safe(self) -> bool:
        return not self.affected and self.quorum_loss is None


def reasons(report: StopReport, max_topics: int) -> list[str]:
    """Return why the broker cannot be stopped, worst first: one sentence per effect, with at most `max_topics` topics. Pure."""
    found = []
    for effect, what in _WHAT.items():
        partitions = Counter(each.topic for each in report.affected if each.effect is effect)
        if not partitions:
            continue
        named = [f"{topic} ({count:,})" for topic, count in partitions.most_common(max_topics)]
        if more := len(partitions) - len(named):
            named.append(f"and {more:,} more topic{'s' * (more != 1)}")
        total = partitions.total()
        found.append(f"{total:,} partition{'s' * (total != 1)} would {what}: {', '.join(named)}")
    if report.quorum_loss is not None:
        found.append(f"the metadata quorum would be lost: {report.quorum_loss}")
    return found


_WHAT = {
    Effect.OFFLINE: "be offline, because no other replica is in sync",
    Effect.BELOW_MIN_ISR: f"refuse acks=all, because fewer than {MIN_ISR} replicas would be in sync",
}


async def judge_stop(cluster: Cluster, broker_id: int) -> StopReport:
    """Judge whether a broker can be stopped now. Raises OperationError if it does not exist or only controllers are known."""
    from barnabas.client.admin.brokers import Brokers

    if cluster.settings.bootstrap_controllers:
        raise OperationError("controllers do not report in-sync replicas", advice="use --bootstrap-server")
    brokers = Brokers(cluster)
    has_fenced = await brokers.can_list_fenced_brokers()
    nodes = {node.id: node for node in (await brokers.describe_cluster(include_fenced_brokers=has_fenced)).nodes}
    if broker_id not in nodes:
        known = ", ".join(map(str, sorted(nodes)))
        raise OperationError(f"there is no such broker; there are {known}", resource=f"broker {broker_id}")
    warnings: list[str] = []
    state = await cluster.metadata(None)
    hit = [topic for topic in state.topics.values() if any(broker_id in p.isr for p in topic.partitions.values())]
    least: dict[str, int] = {}
    for name, settings in (await topic_settings(cluster, [topic.name for topic in hit], [MIN_ISR])).items():
        if isinstance(settings, KafkaError):
            warnings.append(f"{name}: {MIN_ISR} is unknown ({settings.code.name}), assuming 1")
        elif settings.min_isr is not None:
            least[name] = settings.min_isr
    loss, voters = await _quorum_loss(cluster, broker_id, warnings)
    affected = list(affected_by(broker_id, hit, least))
    return StopReport(affected, loss, voters, bool(nodes[broker_id].is_fenced), warnings)


async def _quorum_loss(cluster: Cluster, broker_id: int, warnings: list[str]) -> tuple[str | None, list[int]]:
    from barnabas.client.admin.quorum import Quorum
    from barnabas.operations.quorum.health import judge, loss_of

    try:
        info = await Quorum(cluster).describe_quorum()
    except (KafkaError, UnsupportedVersionError) as error:
        warnings.append(f"the effect on the quorum is unknown: {error}")
        return None, []
    loss = loss_of(info, judge(info, now_ms=0), broker_id)
    return loss, [voter.replica_id for voter in info.voters]
