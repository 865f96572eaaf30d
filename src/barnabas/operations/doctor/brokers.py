"""Checks of the nodes of a running cluster: who runs, who can be reached, the quorum, disks, settings and releases. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from barnabas.config.endpoints import address_text
from barnabas.metadata.versions import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    LATEST_VERSION,
    METADATA_VERSION,
    default_feature_level,
    metadata_version,
)
from barnabas.operations.doctor.cluster_facts import ClusterFacts, Unknown, names_text
from barnabas.operations.doctor.findings import Check, Fault, error, limited, note, warning
from barnabas.operations.quantities import bytes_text
from barnabas.operations.quorum.health import judge, seconds
from barnabas.wire.errors import KafkaError

_MAX_SHOWN = 10
_MIN_FREE_SHARE = 0.1
_MAX_CLOCK_SKEW_MS = 5_000
_OF_ONE_BROKER: Final = (
    *(
        "node.id",
        "broker.id",
        "broker.rack",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "log.dir",
        "log.dirs",
    ),
    *("metadata.log.dir", "cordoned.log.dirs", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    *("listener.security.protocol.map", "early.start.listeners"),
)
"""Settings that differ between brokers as they should."""
_FEATURES = ("group.version", "transaction.version", ELIGIBLE_LEADER_REPLICAS_VERSION)


def _unanswered(facts: ClusterFacts) -> Iterator[Fault]:
    reasons: dict[str, list[str]] = defaultdict(list)
    for name in facts._fields:
        value = getattr(facts, name)
        if isinstance(value, Unknown):
            reasons[value.reason].append(name.replace("_", " "))
    for reason, names in reasons.items():
        yield note(facts.address, f"not checked: {', '.join(names)}: {reason}", "ask as a user who may describe them")


def _running(facts: ClusterFacts) -> Iterator[Fault]:
    for each in facts.nodes:
        if each.is_fenced:
            yield error(
                f"broker {each.id}",
                "it is fenced: it is registered, but does not run or has not caught up",
                f"start it; or, for good: barnabas reassign run --drain {each.id}; barnabas cluster unregister {each.id}",
            )
    if isinstance(facts.topics, Unknown):
        return
    known = {each.id for each in facts.nodes}
    for broker_id in sorted({r for t in facts.topics for p in t.topic.partitions for r in p.replicas} - known):
        yield error(
            f"broker {broker_id}",
            "partitions have replicas on it, and no such broker is registered",
            f"start it; or move its replicas: barnabas reassign run --drain {broker_id}",
        )


def _reachable(facts: ClusterFacts) -> Iterator[Fault]:
    addresses: dict[tuple[str, int], list[int]] = defaultdict(list)
    for each in facts.nodes:
        if not each.is_fenced:
            addresses[each.host, each.port].append(each.id)
        reason = facts.unreachable.get(each.id)
        if reason is not None and not each.is_fenced:  # else it is down, and its address is not to blame
            where = address_text(each.host, each.port)
            yield error(
                f"broker {each.id}",
                f"it tells clients to connect to {where}, and that fails from here: {reason}",
                f"set advertised.listeners of broker {each.id} to an address that clients can reach",
            )
    for (host, port), ids in addresses.items():
        if len(ids) > 1:
            yield error(
                f"brokers {names_text(ids)}",
                f"all of them tell clients to connect to {address_text(host, port)}",
                "give each broker an address of its own in advertised.listeners",
            )
    for name, reason in facts.unreachable_controllers.items():
        yield note(
            f"controller {name}",
            f"it cannot be reached from here: {reason}",
            "nothing to do if only brokers must reach it; else correct its listeners",
        )


def _quorum(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.quorum, Unknown):
        return
    health = judge(facts.quorum, facts.quorum_clock_ms)
    has_majority = sum(each.works for each in health.voters) >= health.majority and facts.quorum.leader_id >= 0
    make = warning if has_majority else error
    for problem in health.problems:
        yield make("the metadata quorum", problem, "barnabas quorum status")
    if len(health.voters) % 2 == 0:
        count = len(health.voters)
        yield note(
            "the metadata quorum",
            f"it has {count} voters, and can lose no more of them than {count - 1} could",
            "use an odd number of voters; barnabas quorum --help",
        )


def _disks(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.log_dirs, Unknown):
        return
    for broker_id, dirs in facts.log_dirs.items():
        if isinstance(dirs, KafkaError):
            yield note(
                f"broker {broker_id}", f"its disks are not known: {dirs.code.name}", "barnabas log-dirs describe"
            )
            continue
        for path, found in dirs.items():
            subject = f"broker {broker_id}, {path}"
            if found.error is not None:
                yield error(subject, f"the log dir is offline: {found.error.code.name}", "see the log of the broker")
            free, total = found.usable_bytes, found.total_bytes
            if free is not None and total and free < total * _MIN_FREE_SHARE:
                make = warning if free else error
                yield make(
                    subject,
                    f"its disk of {bytes_text(total)} has {bytes_text(free)} left",
                    "barnabas log-dirs describe; then lower retention, or move replicas",
                )
            if found.is_cordoned:
                yield note(subject, "the log dir is cordoned: it gets no new replicas", "change cordoned.log.dirs")


def _drift(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.configs, Unknown) or not facts.configs:
        return
    diff = f"barnabas configs diff broker:{min(facts.configs)} broker:{max(facts.configs)}"
    values: dict[str, dict[str | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    for broker_id, config in facts.configs.items():
        if isinstance(config, KafkaError):
            continue
        for name, entry in config.items():
            if not entry.is_sensitive and name not in _OF_ONE_BROKER and not name.startswith("listener.name."):
                values[name][entry.value].append(broker_id)
    faults = [
        warning(
            f"brokers {names_text(sorted(facts.configs))}",
            f"{name} differs: "
            + "; ".join(f"{value} on {names_text(ids)}" for value, ids in sorted(by_value.items(), key=lambda i: i[1])),
            diff,
        )
        for name, by_value in sorted(values.items())
        if len(by_value) > 1
    ]
    yield from limited(
        "brokers",
        faults,
        _MAX_SHOWN,
        diff,
    )


def _features(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.versions, Unknown):
        return
    found = [each for each in facts.versions.values() if not isinstance(each, KafkaError)]
    ranges = {
        each.supported_features[METADATA_VERSION].last for each in found if METADATA_VERSION in each.supported_features
    }
    if not ranges:
        return
    finalized = {name: levels.last for name, levels in found[0].finalized_features.items()}
    level, newest = finalized.get(METADATA_VERSION, 0), min(*ranges, LATEST_VERSION.value)
    if 0 < level < newest:
        version = metadata_version(newest)
        yield note(
            "metadata.version",
            f"it is finalized at {_version_text(level)}, and all brokers support {version}",
            f"barnabas cluster upgrade --release-version {version.release}",
        )
    elif level == newest:
        for name in _FEATURES:
            wanted = default_feature_level(name, metadata_version(level))
            supported = min(
                (each.supported_features[name].last for each in found if name in each.supported_features), default=0
            )
            if finalized.get(name, 0) < min(wanted, supported):
                yield note(
                    name,
                    f"it is finalized at {finalized.get(name, 0)}, and new clusters of this release have {wanted}",
                    f"barnabas cluster upgrade {name}={wanted}",
                )


def _version_text(level: int) -> str:
    try:
        return str(metadata_version(level))
    except ValueError:
        return str(level)


def _releases(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.versions, Unknown):
        return
    kinds: dict[object, list[int]] = defaultdict(list)
    for broker_id, found in facts.versions.items():
        if not isinstance(found, KafkaError):
            kinds[tuple(sorted(found.ranges.items()))].append(broker_id)
    if len(kinds) > 1:
        shown = "; ".join(names_text(ids) for ids in kinds.values())
        yield warning(
            "brokers",
            f"they serve different versions of APIs, as different releases do: {shown}",
            "barnabas cluster api-versions; finish the upgrade",
        )


def _clock(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.quorum, Unknown) or facts.quorum.leader is None:
        return
    there_ms = facts.quorum.leader.last_fetch_timestamp_ms
    if there_ms is not None and abs(there_ms - facts.quorum_clock_ms) > _MAX_CLOCK_SKEW_MS:
        skew_ms = there_ms - facts.quorum_clock_ms
        yield warning(
            f"controller {facts.quorum.leader_id}",
            f"its clock is {seconds(abs(skew_ms))} {'ahead of' if skew_ms > 0 else 'behind'} that of this machine",
            "synchronize both clocks with NTP: retention and lag in time depend on them",
        )


CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (
    Check("unanswered", "Questions that the cluster did not answer, such as without permission.", _unanswered),
    Check("brokers", "Brokers that do not run.", _running),
    Check("reachable", "Addresses that brokers tell clients, and that do not work.", _reachable),
    Check("quorum", "The metadata quorum: leader, voters that are behind, number of voters.", _quorum),
    Check("disks", "Log dirs that are offline, full or cordoned.", _disks),
    Check("config-drift", "Settings that differ between brokers.", _drift),
    Check("features", "Features that are not finalized at the newest level.", _features),
    Check("releases", "Brokers of different releases.", _releases),
    Check("clock", "Clocks that differ.", _clock),
)
