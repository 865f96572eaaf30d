"""Bytes of Kafka's logs, and answers of a live cluster, as Arrow. Nothing here is a class of Spark's."""
