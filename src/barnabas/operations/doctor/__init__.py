"""Checks of settings, log dirs and clusters: what is wrong, how bad it is, and what to type next.

Its one rule: nothing is changed, locked or written. A check is a small function that yields faults; it is one row in the table
of its area. What a start refuses is found by the functions that a start calls.
"""
