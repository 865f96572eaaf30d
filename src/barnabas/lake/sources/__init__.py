"""Data sources of Spark for Kafka, one file each. Importing them is cheap: readers import the rest when they run."""

from __future__ import annotations

SOURCES = {
    "kafka_log": "barnabas.lake.sources.log:KafkaLog",
    "kafka_metadata": "barnabas.lake.sources.metadata:KafkaMetadata",
    "kafka_consumer_offsets": "barnabas.lake.sources.consumer_offsets:KafkaConsumerOffsets",
    "kafka_transaction_state": "barnabas.lake.sources.transaction_state:KafkaTransactionState",
    "kafka_share_group_state": "barnabas.lake.sources.share_group_state:KafkaShareGroupState",
    "kafka_cluster": "barnabas.lake.sources.cluster:KafkaCluster",
}
"""The class of each data source of Kafka's logs, by its name."""
