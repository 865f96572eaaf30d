"""Writing an image that a metadata.version cannot hold."""

from __future__ import annotations

import pytest

from barnabas.metadata.errors import UnwritableMetadataError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import (
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

HERE = Provenance(1, 1, 1)
TOPIC = Uuid(bytes([1]) * 16)


def full_image() -> MetadataImage:
    return replay(
        EMPTY_IMAGE,
        [
            FeatureLevelRecord(name="metadata.version", feature_level=30),
            RegisterBrokerRecord(broker_id=1, is_migrating_zk_broker=True, log_dirs=[TOPIC], cordoned_log_dirs=[]),
            RegisterControllerRecord(controller_id=1),
            TopicRecord(name="t", topic_id=TOPIC),
            PartitionRecord(
                partition_id=0, topic_id=TOPIC, replicas=[1], directories=[TOPIC], eligible_leader_replicas=[1]
            ),
            UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
            DelegationTokenRecord(owner="User:o", requester="User:o", token_id="t"),
        ],
        HERE,
    )


LOSSES = {
    7: "that broker 1 is migrating",
    10: "the SCRAM credentials of u",
    13: "delegation tokens",
    14: "the registrations of controllers",
    16: "the online log directories of broker 1",
    22: "the eligible leader replicas of t-0",
    29: "the cordoned log directories of broker 1",
}


@pytest.mark.parametrize("level", LOSSES)
def test_what_a_version_cannot_hold_is_named_and_left_out(level: int) -> None:
    lost: list[str] = []
    records = list(to_records(full_image(), MetadataVersion(level), lost.append))
    expected = {text for last, text in LOSSES.items() if level <= last}
    assert expected <= set(lost) <= expected | {"the directories of t-0"}
    assert ("the directories of t-0" in lost) == (level < 17)
    smaller = from_records((record for record, _ in records), HERE)
    assert smaller.metadata_version == level
    assert list(to_records(smaller)) == records


def test_a_loss_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(UnwritableMetadataError, match=r"metadata.version 4.2-IV1 cannot represent the cordoned log"):
        list(to_records(full_image(), MetadataVersion.IBP_4_2_IV1))
    assert from_records((record for record, _ in to_records(full_image())), HERE) == full_image()


def test_an_image_without_a_version_needs_one_to_be_written() -> None:
    with pytest.raises(UnwritableMetadataError):
        list(to_records(EMPTY_IMAGE))
    records = list(to_records(EMPTY_IMAGE, MetadataVersion.IBP_3_9_IV0))
    assert records == [(FeatureLevelRecord(name="metadata.version", feature_level=21), 0)]
