"""Spark sessions: starting one, keeping its output in a file, and checking executors."""
