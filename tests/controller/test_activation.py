"""The first records of a cluster."""

from __future__ import annotations

from random import Random

from barnabas.config import server
from barnabas.controller import activation
from barnabas.controller.situation import Situation
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.replay import replay
from barnabas.wire import Message
from barnabas.wire.records.metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

VERSION = FeatureLevelRecord(name="metadata.version", feature_level=30)
ELR = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def begin(*records: Message, image: object = EMPTY_IMAGE, **settings: str) -> list[Message]:
    config = server.load(None, {name.replace("_", "."): value for name, value in settings.items()})
    situation = Situation(image, config, 0, Random(1))  # type: ignore[arg-type]
    return [record for record, _ in activation.write_bootstrap(situation, records).records]


def test_an_empty_log_begins_with_a_transaction_of_the_bootstrap_records() -> None:
    assert begin(VERSION) == [BeginTransactionRecord(name="Bootstrap records"), VERSION, EndTransactionRecord()]


def test_eligible_leader_replicas_write_down_how_many_must_be_in_sync() -> None:
    written = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    assert begin(VERSION, ELR, min_insync_replicas="2")[1:-1] == [VERSION, ELR, written]


def test_a_log_that_has_begun_is_left_alone() -> None:
    assert begin(VERSION, ELR, image=replay(EMPTY_IMAGE, [VERSION], EMPTY_IMAGE.provenance)) == []
