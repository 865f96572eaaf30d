"""All tables of a lake, and the streams that fill them."""

from __future__ import annotations

from barnabas.lake.facts import schema
from barnabas.lake.facts.groups import fold_groups
from barnabas.lake.facts.share_partitions import fold_share_partitions
from barnabas.lake.facts.spark import fold_metadata
from barnabas.lake.facts.touched import OF_GROUPS, OF_METADATA, OF_TRANSACTIONS
from barnabas.lake.facts.transactions import fold_transactions
from barnabas.lake.sources import consumer_offsets, share_group_state, transaction_state
from barnabas.lake.tables import bronze, coordinators, observations, silver, traffic
from barnabas.lake.tables.gold import access, availability, balance, changes, consumption, incidents, inventory, moves
from barnabas.lake.tables.gold import observations as gold_observations
from barnabas.lake.tables.gold import traffic as gold_traffic
from barnabas.lake.tables.streams import Stream
from barnabas.storage.log_dirs import CLUSTER_METADATA

STREAMS = (
    Stream(
        "kafka_metadata",
        CLUSTER_METADATA.topic,
        bronze.METADATA_RECORDS,
        schema.columns(),
        fold_metadata,
        silver.TABLES,
        narrowing=OF_METADATA,
    ),
    Stream(
        "kafka_consumer_offsets",
        consumer_offsets.TOPIC,
        bronze.GROUP_RECORDS,
        schema.columns(),
        fold_groups,
        coordinators.GROUP_TABLES,
        narrowing=OF_GROUPS,
    ),
    Stream(
        "kafka_transaction_state",
        transaction_state.TOPIC,
        bronze.TRANSACTION_RECORDS,
        schema.columns(),
        fold_transactions,
        coordinators.TRANSACTION_TABLES,
        narrowing=OF_TRANSACTIONS,
    ),
    Stream(
        "kafka_share_group_state",
        share_group_state.TOPIC,
        bronze.SHARE_RECORDS,
        schema.columns(),
        fold_share_partitions,
        coordinators.SHARE_TABLES,
    ),
)
"""In the order in which they run."""

TRAFFIC = Stream(
    "kafka_log",
    "",
    traffic.LOG_RECORDS,
    tables=traffic.TABLES,
    keeps_records=False,
    # Records that retention deletes before they are read are missing in the rates, but are no reason to stop.
    options={"topicsPattern": "(?!__).+", "failOnDataLoss": "false"},
)
"""On request: sums of the records of topics."""

OBSERVING = tuple(
    Stream("kafka_cluster", "", table, part=name, options={"table": name})
    for name, table in observations.TABLES.items()
)
"""On request: observations of a live cluster."""

GOLD = (
    inventory,
    changes,
    availability,
    incidents,
    balance,
    moves,
    access,
    gold_traffic,
    consumption,
    gold_observations,
)
"""Computed from the others: kept up to date by runs, or computed when they are asked for."""

TABLES = {
    table.name: table
    for table in (
        *bronze.TABLES,
        *traffic.TABLES,
        *observations.TABLES.values(),
        *(table for stream in STREAMS for table in stream.tables),
        *(table for module in GOLD for table in module.TABLES),
    )
}
