"""Bytes of the Kafka protocol as JSON and back, for `decode` and `raw`."""
