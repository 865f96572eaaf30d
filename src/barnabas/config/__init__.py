"""Settings of brokers, topics, groups and client metrics: what they are, their values, and where a value comes from.

Everything here is pure: text and mappings in, values out; no file is opened and nothing is looked up on the network.
Import the module you need (`broker`, `topic`, `group`, `client_metrics`, `quotas`, `resolve`, `server`, `properties`);
the package itself imports nothing.
"""
