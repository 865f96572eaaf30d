"""Conversion between Kafka protocol bytes and JSON, for `decode` and `raw`."""
