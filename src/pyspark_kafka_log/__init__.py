"""The package by which Spark finds the data source `kafka_log`."""

from barnabas.lake.sources.log import KafkaLog as DefaultSource

__all__ = ["DefaultSource"]
