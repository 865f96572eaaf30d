"""The package by which Spark finds the data source `kafka_share_group_state`."""

from barnabas.lake.sources.share_group_state import KafkaShareGroupState as DefaultSource

__all__ = ["DefaultSource"]
