"""What one does with a cluster, independent of any front end: no click, no printing, plain exceptions.

Its one rule: a front end asks here and shows the answer. Functions that look are coroutines that take a `client.Cluster`, or
pure functions; functions that change something return a `Proposal` first. What cannot be done is an `OperationError`.
"""
