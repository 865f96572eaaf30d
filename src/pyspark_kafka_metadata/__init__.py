"""The package by which Spark finds the data source `kafka_metadata`."""

from barnabas.lake.sources.metadata import KafkaMetadata as DefaultSource

__all__ = ["DefaultSource"]
