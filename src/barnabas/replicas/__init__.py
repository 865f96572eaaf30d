"""A broker's partitions: their logs, who leads them, what is committed, and who waits for it."""
