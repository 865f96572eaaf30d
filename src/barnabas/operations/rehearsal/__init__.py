"""Rehearsals: what the controller would decide if something happened, and what would become of the cluster.

The decisions are those of `controller`, made on a copy of the metadata. Nothing is sent. No other part of `operations`, and not
the lake, may decide.
"""
