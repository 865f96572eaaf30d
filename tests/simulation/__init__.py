"""Whole nodes in one process, with virtual time and a network, disks and clocks that a seed decides about."""
