"""Streams groups (KIP-1071): the members are threads of a Kafka Streams application, and share its tasks."""
