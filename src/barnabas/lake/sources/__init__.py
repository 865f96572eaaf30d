"""Spark's data sources over Kafka: one file per source. Imports are light; readers load the rest where they run."""
