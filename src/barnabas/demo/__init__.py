"""A day in the life of a small shop, played to a cluster so that there is something to look at.

`shop` says what the shop has, `records` what it writes, `workload` what happens, in order. Nothing here knows the broker: it
all goes through `barnabas.client`, and would do as well with Apache Kafka.
"""
