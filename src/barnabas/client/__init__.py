"""Clients of the protocol."""
