"""Bytes of Kafka's logs, and answers of a live cluster, turned into Arrow. Without Spark."""
