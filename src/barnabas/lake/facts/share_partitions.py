"""The fold of `__share_group_state`: facts about the positions of share groups.

Its one rule: records have the effects of the share coordinator's replay. A snapshot replaces the state of a share partition, an
update changes its position, and a tombstone ends it. The states of single records in flight are not included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.config.internal_topics import SHARE_GROUP_STATE_TOPIC
from barnabas.lake.declared_column import Column
from barnabas.lake.facts.coordinator_logs import fold_logs
from barnabas.lake.facts.log_facts import FoldWithoutMarkers, LogPosition, known
from barnabas.lake.facts.schema import Kind, key_text
from barnabas.lake.reading.decoding.coordinator_records import SHARE_STATES, decode_key, decode_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC: Final = SHARE_GROUP_STATE_TOPIC
_KIND: Final = "share_partitions"
_UPDATE: Final = "ShareUpdate"

KINDS: Final = (
    Kind(
        _KIND,
        "Where was each share group in each partition?",
        keys=(
            Column("group_id", "string", "The share group."),
            Column("topic_id", "string", "The topic's id."),
            Column("partition", "int", "The partition of the topic."),
        ),
        values=(
            Column(
                "start_offset", "bigint", "All records before it are done; null before the first member has fetched."
            ),
            Column(
                "delivery_complete_count",
                "int",
                "How many records from the start offset on are done nevertheless; null if not given.",
            ),
            Column(
                "state_epoch",
                "int",
                "The state epoch: it grows when the group is initialized or its offset is altered.",
            ),
            Column("leader_epoch", "int", "The leader epoch of the partition that last changed the state."),
        ),
    ),
)


class SharePartitionsFold(FoldWithoutMarkers):
    """Folds one log: its records, in order."""

    def __init__(self) -> None:
        super().__init__((_KIND,))

    def apply(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int | None = None) -> None:
        """Apply a record that is not a control record. An unknown type or version has no effect."""
        self.facts.reach(place.offset)
        decoded = decode_key(key, SHARE_STATES)
        if decoded.group_id is None or decoded.topic_id is None:
            return
        fact_key = key_text(decoded.group_id, decoded.topic_id, decoded.partition)
        is_update = decoded.record_type == _UPDATE
        if value is None:
            if not is_update:
                self.facts.close(_KIND, fact_key, place)
            return
        message = decode_value(decoded.record_type, value, with_json=False).message
        if message is None:
            return
        before = self.facts.open[_KIND].get(fact_key)
        values = _values(message, before[7] if is_update and before is not None else None)
        row = (decoded.group_id, decoded.topic_id, decoded.partition, *values)
        self.facts.set(_KIND, fact_key, row, place, in_pieces=is_update)


def _values(message: Any, before: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Return the values in the order of the columns. What an update does not give stays as it was."""
    start_offset, leader_epoch = known(message.start_offset), known(message.leader_epoch)
    state_epoch = getattr(message, "state_epoch", None)
    if before is not None:
        start_offset = before[3] if start_offset is None else start_offset
        state_epoch = before[5]
        leader_epoch = before[6] if leader_epoch is None else leader_epoch
    return start_offset, known(message.delivery_complete_count), state_epoch, leader_epoch


def fold_share_partitions(records: DataFrame, open_facts: DataFrame, *, shards: int) -> DataFrame:
    """Return the facts of share partitions that end with these rows of `kafka_share_group_state`, and all that are open."""
    return fold_logs(TOPIC, SharePartitionsFold, records, open_facts, shards=shards)
