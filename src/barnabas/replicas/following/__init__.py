"""The follower side of replication: fetching from leaders, and truncation where a log has diverged."""
