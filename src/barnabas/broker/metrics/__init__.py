"""Metrics of a node in Prometheus' text format, and its health, over HTTP. See docs/metrics.md.

Its one rule: whatever happens on the hot path adds integers to objects that exist already. Names, labels and texts are
made when somebody asks for them, in slices, by the collectors.
"""
