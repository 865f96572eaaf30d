"""Share partitions that this broker leads: which records of a share group are acquired, by whom, and how often delivered."""
