"""The data source `kafka_share_group_state`: every record of `__share_group_state`, decoded, in batch and as a stream.

    spark.read.format("kafka_share_group_state").load("/var/lib/kafka/data")

Its one rule: importing it is cheap. The code that reads is imported when something is read.
"""

from __future__ import annotations

from barnabas.config.internal_topics import SHARE_GROUP_STATE_TOPIC as TOPIC
from barnabas.lake.declared_column import Column
from barnabas.lake.sources.coordinator_log import CONTENT_COLUMNS, ERROR, PLACE_COLUMNS, CoordinatorLog

__all__ = ["COLUMNS", "ERROR", "TOPIC", "KafkaShareGroupState"]

COLUMNS = (
    *PLACE_COLUMNS,
    Column("group_id", "string", "the share group that the record is about"),
    Column("topic_id", "string", "the id of the topic"),
    Column("topic_partition", "int", "the partition of the topic"),
    *CONTENT_COLUMNS,
)


class KafkaShareGroupState(CoordinatorLog):
    NAME = "kafka_share_group_state"
    TOPIC = TOPIC
    COLUMNS = COLUMNS
