"""Groups of consumers: their members, the partitions that each member reads, and committed offsets."""
