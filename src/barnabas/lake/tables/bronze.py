"""Bronze: records as the logs have them, decoded and with secrets masked, one row each; and what could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.sources import consumer_offsets, metadata, transaction_state
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.quarantine import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_read(records: DataFrame) -> DataFrame:
    return records


METADATA_RECORDS = Table(
    name="metadata_records",
    layer="bronze",
    question="What does each committed record of the metadata log say?",
    columns=metadata.COLUMNS,
    inputs=("records",),
    build=as_read,
    mode=Mode.APPEND,
    keys=("cluster_id", "offset", "snapshot_end_offset", "snapshot_epoch", "position", "batch_index"),
    not_null=("cluster_id", "is_snapshot"),
)

GROUP_RECORDS = Table(
    name="group_records",
    layer="bronze",
    question="What does each record of __consumer_offsets say?",
    columns=consumer_offsets.COLUMNS,
    inputs=("records",),
    build=as_read,
    mode=Mode.APPEND,
    keys=("cluster_id", "partition", "offset"),
    not_null=("cluster_id", "partition", "offset"),
)

TRANSACTION_RECORDS = Table(
    name="transaction_records",
    layer="bronze",
    question="What does each record of __transaction_state say?",
    columns=transaction_state.COLUMNS,
    inputs=("records",),
    build=as_read,
    mode=Mode.APPEND,
    keys=("cluster_id", "partition", "offset"),
    not_null=("cluster_id", "partition", "offset"),
)

TABLES = (METADATA_RECORDS, GROUP_RECORDS, TRANSACTION_RECORDS, QUARANTINE)
