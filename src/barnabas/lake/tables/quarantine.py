"""The quarantine: place and reason of what could not be read, never its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = (
    Column("cluster_id", "string", "The cluster."),
    Column("source", "string", "The data source that could not read it."),
    Column("node_id", "int", "The node that the copy belongs to, if known."),
    Column("file", "string", "The segment or snapshot; null if it concerns a whole partition."),
    Column("position", "bigint", "The position of the batch in the file."),
    Column("topic", "string", "The topic of the log."),
    Column("partition", "int", "The partition of the log."),
    Column("base_offset", "bigint", "The base offset according to the batch."),
    Column("reason", "string", "What is wrong, or what was removed before it could be read."),
)
_OTHER_NAMES = {
    "file": ("source_file", "segment"),
    "topic": ("topic", "topic_name"),
    "base_offset": ("base_offset", "offset"),
    "reason": ("error",),
}


def quarantined(errors: DataFrame, cluster_id: str, source: str, topic: str) -> DataFrame:
    """Return rows of a source that have an error as rows of this table. Columns that the source lacks are null."""
    from pyspark.sql import functions as f

    there = set(errors.columns)
    values = {"cluster_id": f.lit(cluster_id), "source": f.lit(source)}
    if topic:
        values["topic"] = f.lit(topic)
    for column in (column for column in COLUMNS if column.name not in values):
        names = [name for name in _OTHER_NAMES.get(column.name, (column.name,)) if name in there]
        values[column.name] = f.col(names[0]) if names else f.lit(None)
    return errors.select(*(values[column.name].cast(column.type).alias(column.name) for column in COLUMNS))


QUARANTINE = Table(
    name="quarantine",
    layer="bronze",
    question="What could not be read, where is it, and why?",
    columns=COLUMNS,
    inputs=("errors",),
    build=quarantined,
    mode=Mode.APPEND,
    keys=("cluster_id", "source", "node_id", "file", "position", "topic", "partition", "base_offset", "reason"),
    not_null=("cluster_id", "source", "reason"),
)
