"""The package by which Spark finds the data source `kafka_cluster`."""

from barnabas.lake.sources.cluster import KafkaCluster as DefaultSource

__all__ = ["DefaultSource"]
