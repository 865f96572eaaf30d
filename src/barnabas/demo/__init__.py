"""Half a day of a small shop, played to a cluster so that there is something to see.

`shop` holds its topics, ACLs, quotas and users, `records` makes its records, `workload` plays its hours in order, and `clock`
is the wall clock of its node. Nothing here imports the broker: the workload goes through `barnabas.client`.
"""
