"""Topics: their state, changes, idle topics, and the number of partitions to choose."""
