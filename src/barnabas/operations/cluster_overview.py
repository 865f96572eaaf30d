"""A cluster at a glance: findings of the doctor, drift from what files declare, and its size in numbers.

Its one rule: what may not be seen or does not answer is named in `unknown`; the rest is shown all the same.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.broker_loads import Disk, disk_of
from barnabas.operations.doctor.cluster import CHECKS
from barnabas.operations.doctor.cluster_facts import ClusterFacts, Unknown, look_at_cluster
from barnabas.operations.doctor.findings import Finding, Severity, findings, worst_first
from barnabas.operations.quorum.active_controller import ActiveController, find_active_controller
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.operations.doctor.cluster_facts import GroupFacts

_MAX_DRIFT_SHOWN = 10
_TOLD_APART = ("unanswered",)
"""Checks whose findings are in `unknown`."""


class ClusterOverview(NamedTuple):
    """A cluster. Numbers are None if they are not known; `unknown` says why, by what is not known."""

    cluster_id: str | None
    controller: ActiveController
    brokers: int
    running: int
    topics: int | None
    partitions: int | None
    statuses: Counter[str]
    """Partitions by their status."""
    groups: int | None
    total_lag: int | None
    disk: Disk
    findings: list[Finding]
    unknown: dict[str, str]


async def look_at_overview(cluster: Cluster, name: str, declared: Sequence[Path] = ()) -> ClusterOverview:
    """Look at everything; `declared` are files that declare the cluster. Raises OperationError for controllers."""
    facts = await look_at_cluster(cluster, name)
    controller = await find_active_controller(cluster)
    drift = await find_drift(cluster, declared) if declared else []
    return overview_of(facts, cluster.state.cluster_id, controller, drift)


def overview_of(
    facts: ClusterFacts, cluster_id: str | None, controller: ActiveController, drift: Sequence[Finding] = ()
) -> ClusterOverview:
    """Summarize facts. Pure."""
    topics = None if isinstance(facts.topics, Unknown) else facts.topics
    groups = None if isinstance(facts.groups, Unknown) else facts.groups
    return ClusterOverview(
        cluster_id,
        controller,
        len(facts.nodes),
        len(facts.running),
        None if topics is None else len(topics),
        None if topics is None else sum(len(each.partitions) for each in topics),
        Counter(part.status for each in topics or () for part in each.partitions),
        None if groups is None else len(groups),
        None if groups is None else _lag(groups),
        _disk(facts),
        worst_first([*(each for each in findings(CHECKS, facts) if each.check not in _TOLD_APART), *drift]),
        dict(_unknown(facts)),
    )


def _lag(groups: dict[str, GroupFacts]) -> int:
    return sum(each.lag or 0 for group in groups.values() for each in group.positions)


def _disk(facts: ClusterFacts) -> Disk:
    if isinstance(facts.log_dirs, Unknown):
        return Disk()
    return disk_of(
        log_dir for each in facts.log_dirs.values() if not isinstance(each, KafkaError) for log_dir in each.values()
    )


_NAMES = {"hanging": "hanging transactions", "configs": "settings of brokers", "versions": "releases"}


def _unknown(facts: ClusterFacts) -> Iterator[tuple[str, str]]:
    for name in ("topics", "log_dirs", "quorum", "configs", "versions", "groups", "hanging", "acls"):
        found = getattr(facts, name)
        if isinstance(found, Unknown):
            yield _NAMES.get(name, name.replace("_", " ")), found.reason


async def find_drift(cluster: Cluster, files: Sequence[Path]) -> list[Finding]:
    """Return one finding for each change that would make the cluster match the files. Raises DocumentError."""
    from barnabas.declared.files import load_documents
    from barnabas.operations.declared import compare

    document = load_documents([str(each) for each in files], io.StringIO())
    changes = (await compare(cluster, document, delete=False)).changes
    remedy = f"barnabas apply -f {files[0]}; or change the file"
    found = [
        Finding(Severity.WARNING, "drift", document.file, f"the cluster differs: {each}", remedy) for each in changes
    ]
    if len(found) > _MAX_DRIFT_SHOWN:
        more = f"{len(found) - _MAX_DRIFT_SHOWN:,} more differences"
        found[_MAX_DRIFT_SHOWN:] = [Finding(Severity.WARNING, "drift", document.file, more, remedy)]
    return found
