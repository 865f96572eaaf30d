"""The package by which Spark finds the data source `kafka_transaction_state`."""

from barnabas.lake.sources.transaction_state import KafkaTransactionState as DefaultSource

__all__ = ["DefaultSource"]
