"""The package by which Spark finds the data source `kafka_consumer_offsets`."""

from barnabas.lake.sources.consumer_offsets import KafkaConsumerOffsets as DefaultSource

__all__ = ["DefaultSource"]
