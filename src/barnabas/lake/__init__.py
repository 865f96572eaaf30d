"""The lake: Kafka's logs as tables of Spark.

    from barnabas import lake

    spark = lake.session()                                     # a session with all of the settings that the sources like
    lake.register(other_spark)                                 # or the sources alone, for a session of your own
    spark.read.format("kafka_metadata").load("/var/lib/kafka/__cluster_metadata-0")

Needs the extra `lake` (`pip install 'barnabas[lake]'`) and Java 17. Nothing here is imported by the broker or the client.
kernels and columns (batches -> Arrow), decoding (records -> columns and JSON), sources (Spark's data sources), facts (what was
true when, folded from records; pure), tables (their declarations), store and runner (a lake on disk, and how it grows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from barnabas.lake.asking.opened import OpenLake

SOURCES = {
    "kafka_log": "barnabas.lake.sources.log:KafkaLog",
    "kafka_metadata": "barnabas.lake.sources.metadata:KafkaMetadata",
    "kafka_consumer_offsets": "barnabas.lake.sources.consumer_offsets:KafkaConsumerOffsets",
    "kafka_transaction_state": "barnabas.lake.sources.transaction_state:KafkaTransactionState",
    "kafka_cluster": "barnabas.lake.sources.cluster:KafkaCluster",
}
"""The name of each data source, and where its class is."""


def register(spark: SparkSession) -> None:
    """Makes the data sources known to a session, whether or not Spark has found them by itself."""
    from importlib import import_module

    for place in SOURCES.values():
        module, name = place.split(":")
        spark.dataSource.register(getattr(import_module(module), name))


def session(**settings: str) -> SparkSession:
    """A local session with the settings that the sources like; `settings` as Spark names them go before ours."""
    from barnabas.lake.spark.session import start

    return start(settings)


def open(path: Path | str, spark: SparkSession | None = None) -> OpenLake:  # noqa: A001
    """The tables of a lake by name, as DataFrames; in this session, or a new one."""
    from pathlib import Path

    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake

    found = Lake(Path(path))
    return OpenLake(spark or session(), found)
