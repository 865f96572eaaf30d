"""Configs of brokers, topics, groups and client metrics: their definitions, their values, and the source of each value.

Everything here is pure: text and mappings in, values out. No file is opened and no name is resolved. Import the module
you need (`broker`, `topic`, `group`, `client_metrics`, `quotas`, `resolve`, `server`, `properties`); the package itself
imports nothing.
"""
