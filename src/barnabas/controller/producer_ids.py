"""Allocates blocks of producer ids to brokers. No id is ever allocated twice."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.controller.brokers import check_broker_epoch
from barnabas.controller.situation import Situation
from barnabas.replicated.decision import Result
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.records.metadata import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
_LAST_ID: Final = (1 << 63) - 1


class ProducerIdBlock(NamedTuple):
    first: int
    size: int


def allocate(situation: Situation, broker_id: int, broker_epoch: int) -> Result[ProducerIdBlock]:
    """Allocate the next block to a broker that is registered with this epoch."""
    check_broker_epoch(situation.image, broker_id, broker_epoch)
    first = max(situation.image.producer_ids.next_producer_id, 0)
    if first > _LAST_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producer ids.")
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE)
    return Result([(record, 0)], ProducerIdBlock(first, BLOCK_SIZE))
