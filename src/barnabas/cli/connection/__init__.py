"""Connections to a cluster: profiles, shared options, completion of names, arguments for partitions and resources."""
