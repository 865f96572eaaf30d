"""The first actions of a newly active controller: abort an unfinished transaction, and bootstrap an empty log."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.controller.features import settings_for_elr
from barnabas.controller.situation import Situation
from barnabas.metadata.versions import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, MetadataVersion
from barnabas.replicated.decision import Result
from barnabas.wire import Message
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

BOOTSTRAP_TRANSACTION = "Bootstrap records"


def abort_transaction(situation: Situation, reason: str) -> Result[None]:
    """Abort the unfinished metadata transaction of an earlier controller."""
    return Result([(AbortTransactionRecord(reason=reason), 0)], None)


def write_bootstrap(situation: Situation, records: Sequence[Message]) -> Result[bool]:
    """Write the first records of a cluster atomically. Returns False if the log is not empty."""
    if situation.image.metadata_version is not None:
        return Result([], False)
    versioned = [(record, 0) for record in records]
    levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        versioned += settings_for_elr(situation)
    level = levels.get(METADATA_VERSION, 0)
    if level and MetadataVersion(level).is_metadata_transaction_supported:
        begin, end = BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), EndTransactionRecord()
        versioned = [(begin, 0), *versioned, (end, 0)]
    return Result(versioned, True)
