"""Topics: their state, changes, idle ones, how many partitions one needs."""
