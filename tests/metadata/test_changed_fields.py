"""Changes field by field: every kind of change has a row, and what a restart makes is told apart from the rest."""

from __future__ import annotations

import json

import pytest

from barnabas.metadata.brokers import Broker, Controller, Endpoint
from barnabas.metadata.changed_fields import ChangedField, changed_fields, is_routine, summary
from barnabas.metadata.changes import (
    BrokerChanged,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigChanged,
    ControllerChanged,
    FeatureChanged,
    PartitionAdded,
    PartitionChanged,
    ProducerIdsChanged,
    QuotaChanged,
    ScramCredentialChanged,
    TokenChanged,
    TopicCreated,
    TopicDeleted,
)
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.pmap import PMap
from barnabas.metadata.scram import ScramUser
from barnabas.metadata.tokens import DelegationToken
from barnabas.metadata.topics import Partition, Topic
from barnabas.wire import Uuid

ONE, TWO = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)
BROKER = Broker(1, 10, ONE, PMap(), PMap(), None, False, False, False, (ONE,), None)
CONTROLLER = Controller(1, ONE, False, PMap(), PMap())
PARTITION = Partition((1, 2), (ONE, TWO), (1, 2), (), (), 1, 0, 5, 7, (), ())
TOPIC = Topic("orders", ONE, (PARTITION, PARTITION))
TOKEN = DelegationToken("t", "User:o", "User:o", (), 1, 2, 3)
LISTENER = PMap({"CLIENT": Endpoint("CLIENT", "here", 9092, 0)})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (TopicCreated(TOPIC), ("create", "topic", "orders", "partitions", None, 2)),
        (TopicDeleted(TOPIC), ("delete", "topic", "orders", "partitions", 2, None)),
        (PartitionAdded(TOPIC, 1), ("create", "partition", "orders-1", "replicas", None, [1, 2])),
        (
            PartitionChanged(TOPIC, 0, PARTITION, PARTITION._replace(isr=(1,))),
            ("alter", "partition", "orders-0", "isr", [1, 2], [1]),
        ),
        (ConfigChanged(ConfigResource(4, ""), "a.b", None, "1"), ("alter", "broker", "(default)", "a.b", None, "1")),
        (BrokerRegistered(BROKER, None), ("create", "broker", "1", "epoch", None, 10)),
        (BrokerRegistered(BROKER._replace(epoch=11), BROKER), ("alter", "broker", "1", "epoch", 10, 11)),
        (BrokerUnregistered(BROKER), ("delete", "broker", "1", "epoch", 10, None)),
        (BrokerFenced(BROKER._replace(fenced=True)), ("alter", "broker", "1", "fenced", False, True)),
        (
            BrokerChanged(BROKER, BROKER._replace(listeners=LISTENER)),
            *[
                (
                    *("alter", "broker", "1", "listeners", {}),
                    {"CLIENT": {"name": "CLIENT", "host": "here", "port": 9092, "securityProtocol": 0}},
                )
            ],
        ),
        (ControllerChanged(1, None, CONTROLLER), ("create", "controller", "1", None, None, None)),
        (FeatureChanged("metadata.version", 1, 2), ("alter", "feature", "metadata.version", "level", 1, 2)),
        (
            QuotaChanged((("user", "u"), ("client-id", None)), "rate", 1.0, None),
            ("alter", "quota", "user u, client-id (default)", "rate", 1.0, None),
        ),
        (
            ScramCredentialChanged(ScramUser(2, "u"), None, 4096),
            ("alter", "user", "u", "SCRAM-SHA-512 iterations", None, 4096),
        ),
        (
            ScramCredentialChanged(ScramUser(2, "u"), 4096, 4096),
            ("alter", "user", "u", "SCRAM-SHA-512 password", "[hidden]", "[hidden]"),
        ),
        (TokenChanged(TOKEN, None), ("delete", "token", "t", None, None, None)),
        (ProducerIdsChanged(0, 1000), ("alter", "producer_ids", "next", "nextProducerId", 0, 1000)),
    ],
)
def test_a_change_is_a_row_that_json_can_hold(change: Change, expected: tuple[object, ...]) -> None:
    assert changed_fields(change) == [ChangedField(*expected)]  # type: ignore[arg-type]
    json.dumps(changed_fields(change))


def test_every_field_that_differs_is_a_row() -> None:
    after = PARTITION._replace(leader=2, leader_epoch=6)
    fields = [row.field for row in changed_fields(PartitionChanged(TOPIC, 0, PARTITION, after))]
    assert fields == ["leader", "leaderEpoch"]


def test_what_a_restart_makes_is_routine() -> None:
    registered = BrokerRegistered(BROKER._replace(epoch=11, incarnation_id=TWO), BROKER)
    controller = ControllerChanged(1, CONTROLLER, CONTROLLER._replace(incarnation_id=TWO))
    led = PartitionChanged(TOPIC, 0, PARTITION, PARTITION._replace(leader=2, leader_epoch=6, isr=(2, 1)))
    stopped = PARTITION._replace(leader=-1, isr=(1,))
    still = PartitionChanged(TOPIC, 0, stopped, stopped._replace(leader_epoch=8, partition_epoch=9))
    ids = ProducerIdsChanged(0, 1000)
    routine: list[Change] = [registered, controller, led, still, ids]
    assert all(map(is_routine, routine))
    assert summary(routine) == (
        "1 broker registered again, 1 controller registered again, "
        "2 partitions with another leader, epoch or order of in-sync replicas, 1 new block of producer ids"
    )


@pytest.mark.parametrize(
    "change",
    [
        BrokerRegistered(BROKER, None),
        BrokerRegistered(BROKER._replace(epoch=11, rack="b"), BROKER),
        BrokerRegistered(BROKER._replace(epoch=11, fenced=True), BROKER),
        BrokerFenced(BROKER),
        ControllerChanged(1, None, CONTROLLER),
        PartitionChanged(TOPIC, 0, PARTITION, PARTITION._replace(isr=(1,))),
        PartitionChanged(TOPIC, 0, PARTITION, PARTITION._replace(leader=-1)),
        PartitionChanged(TOPIC, 0, PARTITION, PARTITION._replace(replicas=(1, 3), isr=(1, 3))),
        TopicDeleted(TOPIC),
    ],
)
def test_what_needs_attention_is_not(change: Change) -> None:
    assert not is_routine(change)
