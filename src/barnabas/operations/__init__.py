"""Operations on a cluster, independent of any front end: no click, no printing, plain exceptions.

Its one rule: a front end calls these functions and shows the result. Functions that read are pure, or coroutines that take a
`client.Cluster`. Functions that change something return a `Proposal` first. An operation that is not possible raises
`OperationError`.
"""
