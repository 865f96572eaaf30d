"""Half a day of a small shop, simulated on a cluster so that there is something to see.

`shop` has its topics, ACLs, quotas and users, `records` generates its records, `workload` runs its hours in order, and
`clock` is the wall clock of its node. Nothing here imports the broker: the workload uses `barnabas.client`.
"""
