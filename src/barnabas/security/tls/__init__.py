"""The parts of TLS that know Kafka: key and trust stores, Java's names of cipher suites, principals of certificates. Pure.

`client.tls` makes contexts from them. Keys and passwords never appear in a repr or in an error.
"""
