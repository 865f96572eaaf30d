"""Feature levels are raised and lowered by decisions, when every node can follow."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from barnabas.config import server
from barnabas.controller.features import SUPPORTED, Update, UpgradeType, update
from barnabas.controller.situation import Situation
from barnabas.metadata.image import EMPTY_IMAGE, Provenance
from barnabas.metadata.replay import replay
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

ELR = "eligible.leader.replicas.version"
DOWN, UNSAFE = UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
ALL = {name: (low, high) for name, (low, high) in SUPPORTED.items()}


def broker(broker_id: int, supported: Mapping[str, tuple[int, int]]) -> RegisterBrokerRecord:
    feature = RegisterBrokerRecord.BrokerFeature
    features = [
        feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    ]
    return RegisterBrokerRecord(broker_id=broker_id, broker_epoch=1, features=features)


def controller(controller_id: int, supported: Mapping[str, tuple[int, int]]) -> RegisterControllerRecord:
    feature = RegisterControllerRecord.ControllerFeature
    features = [
        feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    ]
    return RegisterControllerRecord(controller_id=controller_id, features=features)


def situation(
    *records: Message,
    metadata_version: int = 30,
    kraft_version: int = 1,
    properties: Mapping[str, str] = {},
) -> Situation:
    start = FeatureLevelRecord(name="metadata.version", feature_level=metadata_version)
    image = replay(EMPTY_IMAGE, [start, *records], Provenance(9, 1, 0))
    return Situation(image, server.load(None, properties), 0, Random(1), kraft_version=kraft_version)


def written(at: Situation, updates: Mapping[str, Update]) -> list[Message]:
    return [record for record, _ in at_once(update(at, updates, False)).records]


def refusal(at: Situation, updates: Mapping[str, Update]) -> str:
    with pytest.raises(KafkaError) as refused:
        at_once(update(at, updates, True))
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert refused.value.message is not None
    return refused.value.message


def level(name: str, feature_level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=feature_level)


def test_a_level_is_raised_lowered_and_written_again() -> None:
    at = situation(broker(1, ALL), level("group.version", 1))
    assert written(at, {"share.version": Update(1)}) == [level("share.version", 1)]
    assert written(at, {"group.version": Update(0, DOWN)}) == [level("group.version", 0)]
    assert written(at, {"group.version": Update(1)}) == [level("group.version", 1)]
    assert at_once(update(at, {"share.version": Update(1)}, True)).records == []


@pytest.mark.parametrize(
    ("name", "wanted", "why"),
    [
        ("group.version", Update(1, 0), "The controller does not support the given upgrade type."),
        ("group.version", Update(-1), "A feature version cannot be less than 0."),
        ("nope", Update(1), "Local controller 1 does not support this feature."),
        ("metadata.version", Update(31), "Local controller 1 only supports versions 7-30"),
        ("share.version", Update(1, DOWN), "Can't downgrade to a newer version."),
        ("kraft.version", Update(0, DOWN), "Can't downgrade the version of this feature."),
        (
            "metadata.version",
            Update(29),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        ),
    ],
)
def test_a_level_that_cannot_be_is_refused_with_kafkas_words(name: str, wanted: Update, why: str) -> None:
    at = situation(broker(1, ALL))
    assert refusal(at, {name: wanted}) == f"Invalid update version {wanted.level} for feature {name}. {why}"


def test_every_broker_and_controller_must_support_it() -> None:
    update_share = {"share.version": Update(1)}
    prefix = "Invalid update version 1 for feature share.version. "
    assert refusal(situation(broker(1, ALL), broker(2, {})), update_share) == (
        f"{prefix}Broker 2 does not support this feature."
    )
    assert refusal(situation(broker(1, {**ALL, "share.version": (2, 2)})), update_share) == (
        f"{prefix}Broker 1 only supports versions 2"
    )
    others = [controller(1, {}), controller(2, {**ALL, "share.version": (3, 4)})]
    assert refusal(situation(*others), update_share) == f"{prefix}Controller 2 only supports versions 3-4"
    # Before 3.7 controllers do not register, and are not asked.
    assert written(situation(*others, metadata_version=14), update_share) == [level("share.version", 1)]


def test_a_voter_that_has_not_registered_may_not_support_it() -> None:
    voters = {"controller.quorum.voters": "1@a:1,2@b:1", "controller.quorum.bootstrap.servers": ""}
    assert refusal(situation(properties=voters), {"share.version": Update(1)}).endswith(
        "controller 2 has not registered, and may not support this feature"
    )
    assert written(situation(controller(2, ALL), properties=voters), {"share.version": Update(1)})


def test_metadata_goes_down_only_where_nothing_is_lost() -> None:
    assert written(situation(metadata_version=29), {"metadata.version": Update(26, DOWN)}) == [
        level("metadata.version", 26)
    ]
    what = "Unsupported metadata.version downgrade from 30 to 29. "
    assert refusal(situation(), {"metadata.version": Update(29, DOWN)}) == (
        f"{what}Refusing to perform the requested downgrade because it might delete metadata information."
    )
    assert refusal(situation(), {"metadata.version": Update(29, UNSAFE)}) == (
        f"{what}Unsafe metadata downgrade is not supported in this version."
    )


def test_what_a_feature_needs_may_come_with_it() -> None:
    at = situation(metadata_version=21)
    assert refusal(at, {ELR: Update(1)}).endswith(
        f"{ELR} could not be set to 1 because it depends on metadata.version level 23"
    )
    assert level(ELR, 1) in written(at, {ELR: Update(1), "metadata.version": Update(23)})


def test_eligible_leaders_need_one_number_of_in_sync_replicas_for_all() -> None:
    def config(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name=name, name="min.insync.replicas", value=value)

    at = situation(config("1", "3"), config("2", "3"), properties={"min.insync.replicas": "2"})
    assert written(at, {ELR: Update(1)}) == [config("", "2"), config("1", None), config("2", None), level(ELR, 1)]
    assert at_once(update(at, {ELR: Update(1)}, True)).records == []
    assert written(situation(config("", "1")), {ELR: Update(1)}) == [level(ELR, 1)]


def test_kraft_version_is_not_in_the_image_so_a_record_to_wait_for_is_written() -> None:
    assert written(situation(), {"kraft.version": Update(1)}) == [NoOpRecord()]
    assert written(situation(), {"kraft.version": Update(1, DOWN)}) == []
    assert written(situation(kraft_version=0), {"kraft.version": Update(1)}) == [NoOpRecord()]


def test_of_several_errors_the_one_that_kafka_comes_to_first_is_told() -> None:
    names = ["transaction.version", "streams.version", "share.version", "group.version"]
    assert "feature group.version." in refusal(situation(), {name: Update(9) for name in names})


def test_a_feature_that_nobody_knows_has_no_level_0_either() -> None:
    with pytest.raises(KafkaError, match="Invalid update version 0 for feature unknown") as refused:
        written(situation(), {"unknown": Update(0)})
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert "Feature unknown not found." in str(refused.value)
