"""Classic groups: members join, a leader among them assigns partitions, and all sync. Decisions only; no I/O."""
