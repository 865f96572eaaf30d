"""Checks of what clients of a running cluster leave there: groups, transactions and ACLs. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from barnabas.operations.doctor.cluster_facts import ClusterFacts, GroupFacts, Unknown, names_text
from barnabas.operations.doctor.findings import Check, Fault, Severity, limited, note, warning
from barnabas.operations.quantities import duration_text
from barnabas.security.acl_audit import Kind, audit, finding_text
from barnabas.wire.errors import ErrorCode

_MAX_SHOWN = 10
_MAX_LAG_MS = 10 * 60_000
_WORSE_ACLS = (Kind.WILDCARD, Kind.DENIED)


def _groups(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.groups, Unknown):
        return
    faults = [fault for group_id, group in facts.groups.items() for fault in _group(group_id, group)]
    yield from limited("groups", faults, _MAX_SHOWN, "barnabas groups describe --all")


def _group(group_id: str, group: GroupFacts) -> Iterator[Fault]:
    subject, positions = f"group {group_id}", group.positions
    typed = shlex.quote(group_id)  # ids may have any characters
    records = sum(each.lag or 0 for each in positions)
    unread = f"{records:,} record{'s' * (records != 1)}"
    oldest_ms = max((each.lag_ms or 0 for each in positions), default=0)
    if records and not group.description.members:
        yield note(
            subject,
            f"it has no members, and {unread} to read"
            + (f", the oldest from {duration_text(oldest_ms)} ago" if oldest_ms else ""),
            f"start its consumers; or barnabas groups delete {typed}",
        )
    elif oldest_ms > _MAX_LAG_MS:
        yield warning(
            subject,
            f"it is {duration_text(oldest_ms)} behind: {unread} to read",
            f"barnabas groups describe {typed} --watch 2; it shows whether the group catches up",
        )
    ahead = [
        f"{each.topic}-{each.partition}"
        for each in positions
        if each.committed is not None
        and each.log_end_offset is not None
        and each.committed.offset > each.log_end_offset
    ]
    if ahead:
        yield warning(
            subject,
            f"its offsets are after the end of {names_text(ahead)}: records were lost, or the topic was created again",
            f"barnabas groups reset {typed} --to-latest --all-topics --dry-run",
        )
    gone = {
        each.topic
        for each in positions
        if each.log_end_error is not None and each.log_end_error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    if gone:
        yield note(
            subject,
            f"it has offsets of topics that do not exist: {names_text(sorted(gone))}",
            f"barnabas groups delete-offsets {typed} --topic {min(gone)}",
        )


def _transactions(facts: ClusterFacts) -> Iterator[Fault]:
    if isinstance(facts.hanging, Unknown):
        return
    faults = [
        Fault(
            Severity.ERROR,
            f"{each.topic}-{each.partition}",
            f"a transaction of producer {each.producer.producer_id} hangs from offset "
            f"{each.producer.current_txn_start_offset} on: read_committed consumers wait for ever",
            f"barnabas transactions abort --topic {each.topic} --partition {each.partition} "
            f"--start-offset {each.producer.current_txn_start_offset}",
        )
        for each in facts.hanging
    ]
    yield from limited("transactions", faults, _MAX_SHOWN, "barnabas transactions find-hanging")


def _acls(facts: ClusterFacts) -> Iterator[Fault]:
    if facts.acls is None or isinstance(facts.acls, Unknown):
        return
    topics = None if isinstance(facts.topics, Unknown) else [each.topic.name for each in facts.topics]
    groups = None if isinstance(facts.groups, Unknown) else list(facts.groups)
    faults = []
    for each in audit(facts.acls, topics, groups):
        make = warning if each.kind in _WORSE_ACLS else note
        faults.append(make(f"ACL {finding_text(each)}", f"{each.kind}: {each.message}", "barnabas acls audit"))
    faults.sort(key=lambda each: each.severity.rank)
    yield from limited("ACLs", faults, _MAX_SHOWN, "barnabas acls audit")


CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (
    Check("groups", "Groups that are behind, without members, or after the end of a topic.", _groups),
    Check("transactions", "Transactions that no coordinator will end.", _transactions),
    Check("acls", "ACLs without effect, redundant or too wide.", _acls),
)
