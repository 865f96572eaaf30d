"""Certificates, users and settings of a secured node: what `security init` and `testing.Security` have in common."""
