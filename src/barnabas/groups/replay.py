"""Replay: records of `__consumer_offsets` change the image only here.

Each file with records has a table from the type of the key to `replay(image, key, value, place)`; a value of None is a
tombstone. This file joins the tables. Record types without a function are ignored.
"""

from __future__ import annotations

from barnabas.groups import consumer_replay, offset_records
from barnabas.groups.classic import records as classic_records
from barnabas.groups.image import GroupsImage, RecordPosition, Replay
from barnabas.groups.share import replay as share_replay
from barnabas.groups.streams import replay as streams_replay
from barnabas.replicated.loop import Batch
from barnabas.steps import Slices
from barnabas.wire import Message

REPLAY: dict[type[Message], Replay] = {
    **offset_records.REPLAY,
    **classic_records.REPLAY,
    **consumer_replay.REPLAY,
    **share_replay.REPLAY,
    **streams_replay.REPLAY,
}


def apply(image: GroupsImage, batch: Batch) -> Slices[GroupsImage]:
    """Return the image after a batch."""
    producer_id = None if batch.producer is None else batch.producer.producer_id
    if batch.marker is not None and producer_id is not None:
        return (yield from offset_records.end_transaction(image, producer_id, is_commit=batch.marker.is_commit))
    for number, record in enumerate(batch.records):
        if number:
            yield
        replay_record = REPLAY.get(type(record.key))
        if replay_record is not None:
            place = RecordPosition(batch.base_offset + number, producer_id)
            changed = replay_record(image, record.key, record.value, place)
            image = changed if isinstance(changed, GroupsImage) else (yield from changed)
    return image
