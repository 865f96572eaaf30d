"""Bronze: the records of the logs, decoded and with secrets masked, one row each; and what could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.declared_column import Column
from barnabas.lake.sources import consumer_offsets, metadata, share_group_state, transaction_state
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.quarantine import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_PLACE = ("cluster_id", "partition", "offset")


def as_read(records: DataFrame) -> DataFrame:
    return records


def records_table(
    name: str, question: str, columns: tuple[Column, ...], keys: tuple[str, ...], not_null: tuple[str, ...] = ()
) -> Table:
    """Return a table with the rows of a source, unchanged."""
    return Table(name, "bronze", question, columns, ("records",), as_read, Mode.APPEND, keys, not_null)


METADATA_RECORDS = records_table(
    "metadata_records",
    "What does each committed record of the metadata log contain?",
    metadata.COLUMNS,
    ("cluster_id", "offset", "snapshot_end_offset", "snapshot_epoch", "position", "batch_index"),
    ("cluster_id", "is_snapshot"),
)
GROUP_RECORDS = records_table(
    "group_records",
    "What does each record of __consumer_offsets contain?",
    consumer_offsets.COLUMNS,
    _PLACE,
    _PLACE,
)
TRANSACTION_RECORDS = records_table(
    "transaction_records",
    "What does each record of __transaction_state contain?",
    transaction_state.COLUMNS,
    _PLACE,
    _PLACE,
)
SHARE_RECORDS = records_table(
    "share_records",
    "What does each record of __share_group_state contain?",
    share_group_state.COLUMNS,
    _PLACE,
    _PLACE,
)

TABLES = (METADATA_RECORDS, GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_RECORDS, QUARANTINE)
