"""barnabas: a Kafka-compatible broker and control plane in Python."""

__version__ = "0.1.0"
