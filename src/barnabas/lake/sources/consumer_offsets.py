"""The data source `kafka_consumer_offsets`: every record of `__consumer_offsets`, decoded, in batch and as a stream.

    spark.read.format("kafka_consumer_offsets").load("/var/lib/kafka/data")

Its one rule: importing it is cheap. The code that reads is imported when something is read.
"""

from __future__ import annotations

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from barnabas.lake.declared_column import Column
from barnabas.lake.sources.coordinator_log import CONTENT_COLUMNS, ERROR, PLACE_COLUMNS, CoordinatorLog

__all__ = ["COLUMNS", "ERROR", "TOPIC", "KafkaConsumerOffsets"]

COLUMNS = (
    *PLACE_COLUMNS,
    Column("group_id", "string", "the group that the record is about"),
    Column("topic", "string", "the topic of a committed offset"),
    Column("topic_partition", "int", "the partition of a committed offset"),
    Column("member_id", "string", "the member that the record is about"),
    *CONTENT_COLUMNS,
)


class KafkaConsumerOffsets(CoordinatorLog):
    NAME = "kafka_consumer_offsets"
    TOPIC = TOPIC
    COLUMNS = COLUMNS
