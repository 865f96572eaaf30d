"""The one place where a record of `__consumer_offsets` becomes a change of the image.

Each file of this folder that has records has a table of its own: the type of the key -> `replay(image, key, value,
place)`, where a value of None is a tombstone. The tables are put together here. Types without a function (share and
streams groups) are left alone.
"""

from __future__ import annotations

from barnabas.groups import consumer_replay, offset_records
from barnabas.groups.classic import records as classic_records
from barnabas.groups.image import GroupsImage, Place, Replay
from barnabas.replicated.loop import Batch
from barnabas.wire import Message

REPLAY: dict[type[Message], Replay] = {
    **offset_records.REPLAY,
    **classic_records.REPLAY,
    **consumer_replay.REPLAY,
}


def apply(image: GroupsImage, batch: Batch) -> GroupsImage:
    """The image after a batch."""
    producer_id = None if batch.producer is None else batch.producer.producer_id
    if batch.marker is not None and producer_id is not None:
        return offset_records.end_transaction(image, producer_id, is_commit=batch.marker.is_commit)
    for number, record in enumerate(batch.records):
        replay_record = REPLAY.get(type(record.key))
        if replay_record is not None:
            image = replay_record(image, record.key, record.value, Place(batch.base_offset + number, producer_id))
    return image
