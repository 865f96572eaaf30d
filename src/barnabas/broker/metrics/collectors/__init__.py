"""One file for each part of the metrics: `METRICS` that it has, and `collect`, which reads them from the node's parts.

Its one rule: a collector reads and changes nothing, opens no log, and yields wherever its work grows with the node.
"""
