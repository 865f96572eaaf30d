"""The web console: clusters in a browser, for barnabas and Apache Kafka.

Its one rule: no domain logic. A page asks `operations` or `client` through a `Visit`, and a template shows the answer.
"""
