"""Topics: created and deleted, and partitions added to them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.controller.situation import Situation
from barnabas.replicated.loop import Result
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.records.metadata import RemoveTopicRecord


def delete(situation: Situation, topic_ids: Iterable[Uuid]) -> Result[dict[Uuid, KafkaError | None]]:
    """For each id the error, or None for a topic that is deleted. A topic's configs go with it on replay."""
    records = []
    errors: dict[Uuid, KafkaError | None] = {}
    for topic_id in topic_ids:
        if topic_id in situation.image.topics.by_id:
            records.append((RemoveTopicRecord(topic_id=topic_id), 0))
            errors[topic_id] = None
        else:
            errors[topic_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    return Result(records, errors)
