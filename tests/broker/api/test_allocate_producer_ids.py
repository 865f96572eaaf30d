"""AllocateProducerIds (67)."""

from __future__ import annotations

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.records.metadata import ProducerIdsRecord
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import cluster


def test_each_block_begins_where_the_last_one_ends() -> None:
    node, brokers = cluster(2)
    for start, broker in ((0, brokers[1]), (1000, brokers[2]), (2000, brokers[1])):
        request = AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker.epoch)
        response = broker.call(request, 0)
        assert (response.error_code, response.producer_id_start, response.producer_id_len) == (0, start, 1000)
    last = ProducerIdsRecord(broker_id=1, broker_epoch=brokers[1].epoch, next_producer_id=3000)
    assert node.written[-1] == last


def test_a_stale_broker_gets_none() -> None:
    node, brokers = cluster(1)
    count = len(node.written)
    assert brokers[1].call(AllocateProducerIdsRequest(broker_id=1, broker_epoch=0), 0).error_code == 77
    assert brokers[1].call(AllocateProducerIdsRequest(broker_id=7, broker_epoch=0), 0).error_code == 77
    assert len(node.written) == count


def test_when_all_are_given_out_there_are_no_more() -> None:
    node = MemoryNode(records=[ProducerIdsRecord(broker_id=1, broker_epoch=101, next_producer_id=2**63 - 1000)])
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=101)
    assert node.call(request, 0, listener="controller").error_code == -1
    assert node.written == []


def test_it_needs_cluster_action() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=101)
    assert node.call(request, 0, listener="controller").error_code == 31
