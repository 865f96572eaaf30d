"""UnregisterBroker (64)."""

from __future__ import annotations

import pytest

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.records.metadata import PartitionChangeRecord, UnregisterBrokerRecord
from tests.broker.harness import MemoryNode
from tests.broker.partition_captures import Capture, captures, node_before
from tests.controller.situations import TOPIC, partition, topic

STATES = {"stopped broker": 2186, "again": 2187}


@pytest.mark.parametrize("capture", captures("UnregisterBroker"), ids=str)
def test_answers_are_those_of_apache_kafka(capture: Capture) -> None:
    assert capture.ask(node_before(STATES.get(capture.case, 2186))) == capture.response


def test_a_broker_that_is_forgotten_leaves_every_isr() -> None:
    node = MemoryNode(brokers=2, records=topic(partition([1, 2])))
    assert node.call(UnregisterBrokerRequest(broker_id=1), 0).error_code == 0
    assert node.written == [
        PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=[2], leader=2),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=101),
    ]


def test_it_needs_alter_on_the_cluster() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    response = node.call(UnregisterBrokerRequest(broker_id=1), 0)
    assert (response.error_code, node.written) == (31, [])
    assert response.error_message == "The request of User:ANONYMOUS from 127.0.0.1 needs ALTER permission."
