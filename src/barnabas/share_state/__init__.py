"""The share coordinator: the state of share partitions, kept in `__share_group_state`, and the persister that reaches it."""
