"""Spark and Python send the same keys, and the same records, to the same shards."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.facts import metadata
from barnabas.lake.facts.metadata import destinations
from barnabas.lake.facts.sharding import log_key, log_key_column, shard_column, shard_of
from barnabas.lake.facts.spark import route_metadata
from barnabas.wire import message_class
from barnabas.wire.records import control
from tests.lake.controller_histories import history
from tests.lake.facts.metadata_facts import log_items
from tests.lake.facts.test_spark import source_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALPHABETS = ("abcxyz09._-", "äßé\u0142\u4e2d\u6587", "\U0001f600\U00020000\ufffd\x00\x7f\n ")


def random_keys(rng: random.Random, count: int) -> list[str]:
    made = ("".join(rng.choices(rng.choice(ALPHABETS), k=rng.randrange(40))) for _ in range(count))
    return ["", *made]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64])
def test_both_rules_agree_on_random_keys(spark: SparkSession, shards: int) -> None:
    from pyspark.sql import functions as f

    rng = random.Random(shards)
    rows = [(rng.choice((None, "", "cluster")), key) for key in random_keys(rng, 500)]
    given = spark.createDataFrame(rows, "cluster_id string, key string")
    log = log_key_column(f.col("cluster_id"), f.col("key"))
    found = given.select("cluster_id", "key", shard_column(f.col("key"), shards), shard_column(log, shards)).collect()
    assert len(found) == len(rows)
    assert [tuple(row) for row in found] == [
        (cluster_id, key, shard_of(key, shards), shard_of(log_key(cluster_id, key), shards)) for cluster_id, key in rows
    ]


def test_both_rules_send_records_of_every_type_to_the_same_shards(spark: SparkSession) -> None:
    made = [record for batch in history(random.Random(11).randrange, 150) for record in batch.records]
    types = [*metadata.ROUTES, *metadata.SAME_SHARD, *metadata.WITHOUT_EFFECT]
    every = [(getattr(control, name, None) or message_class(name))() for name in types]
    items = log_items([*every, *made])
    shards = 5
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in route_metadata(source_rows(spark, items), shards).select("at", "shard").collect():
        found[row["at"]].append(row["shard"])
    expected = {
        item.offset: sorted(destinations(item.record, shards))
        for item in items
        if type(item.record).__name__ not in metadata.WITHOUT_EFFECT
    }
    assert {offset: sorted(places) for offset, places in found.items()} == expected
