"""The next producer id that was not allocated to any broker yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.wire.records.metadata import ProducerIdsRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft


NO_PRODUCER_ID: Final = -1


class ProducerIds(NamedTuple):
    """-1 means that no producer id was ever allocated."""

    next_producer_id: int = NO_PRODUCER_ID


class ProducerIdsDraft:
    __slots__ = ("next_producer_id",)

    touched: tuple[()] = ()

    def __init__(self, base: ProducerIds) -> None:
        self.next_producer_id = base.next_producer_id

    def finish(self) -> ProducerIds:
        return ProducerIds(self.next_producer_id)


def replay_producer_ids(draft: Draft, record: ProducerIdsRecord) -> None:
    draft.producer_ids.next_producer_id = max(record.next_producer_id, NO_PRODUCER_ID)  # a snapshot has no other


def to_records(producer_ids: ProducerIds) -> Iterator[tuple[ProducerIdsRecord, int]]:
    if producer_ids.next_producer_id >= 0:
        yield (
            ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=producer_ids.next_producer_id),
            0,
        )
