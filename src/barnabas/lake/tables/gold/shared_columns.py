"""Columns that several gold tables have."""

from __future__ import annotations

from barnabas.lake.declared_column import Column

CLUSTER = Column("cluster_id", "string", "The cluster.")
WHEN = (
    Column("offset", "bigint", "The offset of the record that changed it."),
    Column("time", "timestamp", "When its batch was appended."),
    Column("epoch", "int", "The epoch of the leader that appended it; null if something ended."),
)
TOPIC = (
    CLUSTER,
    Column("topic_id", "string", "The topic's id."),
    Column("topic_name", "string", "The topic's name."),
)
PARTITION = (*TOPIC, Column("partition", "int", "The partition."))
