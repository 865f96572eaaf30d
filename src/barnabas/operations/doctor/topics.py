"""Checks of the topics of a running cluster: availability, replication, leaders, settings and reassignments. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.operations.broker_loads import broker_loads
from barnabas.operations.doctor.cluster_facts import (
    CLEANUP_POLICY,
    THROTTLE_RATES,
    UNCLEAN,
    ClusterFacts,
    Unknown,
    names_text,
)
from barnabas.operations.doctor.findings import Check, Fault, error, limited, note, warning
from barnabas.operations.reassignments.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS
from barnabas.operations.topics.facts import (
    OFFLINE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    PartitionFacts,
    Settings,
    TopicFacts,
)
from barnabas.wire.errors import KafkaError

_MAX_SHOWN = 10
_MAX_IMBALANCE_PERCENT = 10  # leader.imbalance.per.broker.percentage
_MAX_SKEW_PERCENT, _MIN_REPLICAS_OF_SKEW = 30, 10
_POLICIES = {GROUP_METADATA_TOPIC: "compact", TRANSACTION_STATE_TOPIC: "compact", SHARE_GROUP_STATE_TOPIC: "delete"}


def _topics(facts: ClusterFacts) -> list[TopicFacts]:
    return [] if isinstance(facts.topics, Unknown) else facts.topics


def _available(facts: ClusterFacts) -> Iterator[Fault]:
    """One finding for each topic and kind of trouble, with its partitions."""
    kinds: tuple[tuple[str, Callable[[str, str, str], Fault], str, str], ...] = (
        (OFFLINE, error, "have no leader: nobody can read or write them", "start the brokers of their replicas"),
        (UNDER_MIN_ISR, error, "have too few replicas in sync: writes with acks=all fail", "start the other brokers"),
        (UNDER_REPLICATED, warning, "have replicas that are not in sync", "start the other brokers, or see their logs"),
    )
    for status, make, what, remedy in kinds:
        faults = []
        for topic in _topics(facts):
            numbers = [each.partition.partition_index for each in topic.partitions if each.status == status]
            if numbers:
                name = topic.topic.name
                shown = f"partition{'s' * (len(numbers) > 1)} {names_text(numbers, _MAX_SHOWN)}"
                text = what if len(numbers) > 1 else what.replace("have ", "has ", 1).replace("them", "it")
                faults.append(make(f"topic {name}", f"{shown} {text}", f"barnabas topics describe {name}; {remedy}"))
        yield from limited("topics", faults, _MAX_SHOWN, "barnabas topics describe --under-replicated")


def _replication(facts: ClusterFacts) -> Iterator[Fault]:
    faults, single = [], []
    for topic in _topics(facts):
        factor = max(map(_factor, topic.partitions), default=0)
        least = topic.settings.min_isr if isinstance(topic.settings, Settings) else None
        if least is not None and 0 < factor < least:
            name = topic.topic.name
            faults.append(
                error(
                    f"topic {name}",
                    f"min.insync.replicas={least} exceeds its replication factor {factor}: writes with acks=all always fail",
                    f"barnabas topics alter {name} --replication-factor {least}; or lower min.insync.replicas",
                )
            )
        if factor == 1:
            single.append(topic.topic.name)
    yield from limited("topics", faults, _MAX_SHOWN, "barnabas topics describe")
    if single and len(facts.nodes) > 1:
        wanted = min(3, len(facts.nodes))
        yield warning(
            f"{len(single):,} topic{'s' * (len(single) > 1)}",
            f"with one replica, although there are {len(facts.nodes)} brokers: {names_text(single)}",
            f"barnabas topics alter {single[0]} --replication-factor {wanted}",
        )


def _factor(partition: PartitionFacts) -> int:
    return partition.replication_factor


def _leaders(facts: ClusterFacts) -> Iterator[Fault]:
    preferred: Counter[int] = Counter()
    away: Counter[int] = Counter()
    for topic in _topics(facts):
        for each in topic.topic.partitions:
            if each.replicas and each.leader_id >= 0:
                preferred[each.replicas[0]] += 1
                away[each.replicas[0]] += each.leader_id != each.replicas[0] and each.replicas[0] in each.isr
    for broker_id, count in sorted(preferred.items()):
        if away[broker_id] * 100 > count * _MAX_IMBALANCE_PERCENT:
            yield note(
                f"broker {broker_id}",
                f"it does not lead {away[broker_id]:,} of the {count:,} partitions that it should lead",
                "barnabas elect-leaders --all",
            )


def _skew(facts: ClusterFacts) -> Iterator[Fault]:
    partitions = [each for topic in _topics(facts) for each in topic.topic.partitions]
    if len(facts.running) < 2 or len(partitions) < _MIN_REPLICAS_OF_SKEW * len(facts.running):
        return
    # A description of a partition has all fields that loads are computed from.
    for load in broker_loads(facts.nodes, partitions, {}):  # type: ignore[arg-type]
        skew = load.replica_skew_percent
        if skew is not None and abs(skew) > _MAX_SKEW_PERCENT:
            yield note(
                f"broker {load.broker_id}",
                f"it has {load.replicas:,} replicas, {abs(skew):.0f}% {'more' if skew > 0 else 'fewer'} than the mean",
                "barnabas reassign plan --rebalance",
            )


def _settings(facts: ClusterFacts) -> Iterator[Fault]:
    unclean = []
    for topic in _topics(facts):
        if not isinstance(topic.settings, Settings):
            continue
        name = topic.topic.name
        if topic.settings.changed.get(UNCLEAN, ("", 0))[0] == "true":
            unclean.append(name)
        wanted, policy = _POLICIES.get(name), topic.settings.changed.get(CLEANUP_POLICY, ("delete", 0))[0]
        if wanted is not None and policy != wanted:
            lost = (
                "it grows without limit, and offsets are deleted" if wanted == "compact" else "it grows without limit"
            )
            yield error(
                f"topic {name}",
                f"cleanup.policy is {policy}, and must be {wanted}: {lost}",
                f"barnabas configs set {name} cleanup.policy={wanted}",
            )
    if unclean:
        yield warning(
            f"{len(unclean):,} topic{'s' * (len(unclean) > 1)}",
            f"{UNCLEAN}=true: a replica that is out of sync may become leader, and records are lost: {names_text(unclean)}",
            f"barnabas configs set {unclean[0]} {UNCLEAN}=false",
        )


def _reassignments(facts: ClusterFacts) -> Iterator[Fault]:
    moving: list[str] = []
    stuck: list[str] = []
    down = {each.id for each in facts.nodes if each.is_fenced} | set(facts.unreachable)
    for topic in _topics(facts):
        for each in topic.partitions:
            if each.reassignment is not None:
                name = f"{topic.topic.name}-{each.partition.partition_index}"
                waits = down & set(each.reassignment.adding_replicas)
                (stuck if waits else moving).append(name)
    if stuck:
        yield warning(
            "reassignments",
            f"they add replicas on brokers that do not run, and cannot end: {names_text(stuck)}",
            "start these brokers; or barnabas reassign cancel --all",
        )
    if moving:
        yield note("reassignments", f"replicas are moving: {names_text(moving)}", "barnabas reassign status")
    if not stuck and not moving:
        yield from _throttles(facts)


def _throttles(facts: ClusterFacts) -> Iterator[Fault]:
    """Throttles that a reassignment has left: they slow down every replica that falls behind."""
    left = [
        f"topic {topic.topic.name}"
        for topic in _topics(facts)
        if isinstance(topic.settings, Settings)
        and any(topic.settings.changed.get(each, ("", 0))[0] for each in (LEADER_REPLICAS, FOLLOWER_REPLICAS))
    ]
    for broker_id, config in {} if isinstance(facts.configs, Unknown) else facts.configs.items():
        if not isinstance(config, KafkaError) and any(each in config and config[each].value for each in THROTTLE_RATES):
            left.append(f"broker {broker_id}")
    if left:
        yield warning(
            "throttles",
            f"nothing is being reassigned, but throttles are set: {names_text(left)}",
            "barnabas reassign throttle --clear",
        )


CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (
    Check("partitions", "Partitions that are offline, below min.insync.replicas or under-replicated.", _available),
    Check("replication", "Replication factors below min.insync.replicas, or of 1.", _replication),
    Check("leaders", "Brokers that lead less than they should.", _leaders),
    Check("skew", "Brokers with far more or fewer replicas than others.", _skew),
    Check("topic-settings", "Cleanup policies of internal topics, and elections that lose records.", _settings),
    Check("reassignments", "Reassignments that cannot end, and throttles that they left.", _reassignments),
)
