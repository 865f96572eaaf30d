"""Decoding the records of Kafka's own logs to columns and JSON, with functions compiled per type and version. Pure."""
