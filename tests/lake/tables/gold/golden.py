"""The history of the golden cluster, from Kafka's own dump of its log, which goes back to the first record."""

from __future__ import annotations

from functools import cache

from tests.lake import metadata_golden
from tests.lake.tables.gold.replaying import History, Place, Record, time_of


@cache
def history() -> History:
    """What was committed of it."""
    return History(
        Record(
            metadata_golden.name_of(record),
            metadata_golden.data_of(record),
            Place(record["offset"], time_of(record["timestamp"]), record["partition_leader_epoch"]),
            record["base_offset"],
        )
        for record in metadata_golden.dumped()
        if not record["file"].endswith(".checkpoint") and record["offset"] < metadata_golden.COMMITTED_END
    )
