"""Reassignments: plan, replication factor, files of Kafka's tool, progress, throttles."""
