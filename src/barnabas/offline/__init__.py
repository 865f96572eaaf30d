"""Reads the metadata of a cluster from files, without a running node. Writes and locks nothing."""
