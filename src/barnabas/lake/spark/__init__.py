"""Spark itself: how a session starts, what it prints, and what its executors need."""
