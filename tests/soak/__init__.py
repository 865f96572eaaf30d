"""Clients of six kinds at work for an hour, and a node that is killed under them: `make soak`."""
