"""The package by which Spark finds the data source `barnabas_lake`."""

from barnabas.lake.asking.table_source import LakeTable as DefaultSource

__all__ = ["DefaultSource"]
