"""UpdateFeatures (57)."""

from __future__ import annotations

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.records.metadata import FeatureLevelRecord
from tests.broker import config_captures
from tests.broker.harness import MemoryNode

Update = UpdateFeaturesRequest.FeatureUpdateKey


def test_a_cluster_is_answered_as_by_kafka() -> None:
    # Node 2 was the active controller, and the answers say so.
    memory = MemoryNode(
        {"node.id": "2"},
        brokers=0,
        features={"metadata.version": 21},
        records=config_captures.brokers(1, 2, 3, 4),
        kraft_version=1,
    )
    captures = config_captures.cluster("UpdateFeatures", "1-topics")
    at = next(at for at, each in enumerate(captures) if each["case"].startswith("unsafe downgrade"))
    config_captures.check(memory, captures[:at])
    assert memory.image.features["metadata.version"] == 25
    newest = UpdateFeaturesRequest(feature_updates=[Update(feature="metadata.version", max_version_level=30)])
    assert memory.call(newest, 2).error_code == 0
    config_captures.check(memory, captures[at:])
    assert dict(memory.image.features) == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
        "streams.version": 1,
    }


def test_a_node_is_answered_as_by_kafka() -> None:
    config_captures.check(config_captures.one_node(), config_captures.node("UpdateFeatures"))


def test_one_bad_update_refuses_them_all() -> None:
    memory = config_captures.one_node()
    updates = [Update(feature="group.version", upgrade_type=2), Update(feature="nope", max_version_level=1)]
    assert memory.call(UpdateFeaturesRequest(feature_updates=updates), 2).error_code == 95
    assert memory.written == []


def test_only_validating_writes_nothing() -> None:
    memory = config_captures.one_node()
    updates = [Update(feature="group.version", upgrade_type=2)]
    assert memory.call(UpdateFeaturesRequest(feature_updates=updates, validate_only=True), 2).error_code == 0
    assert memory.written == []
    assert memory.call(UpdateFeaturesRequest(feature_updates=updates), 2).error_code == 0
    assert memory.written == [FeatureLevelRecord(name="group.version", feature_level=0)]
    assert "group.version" not in memory.image.features


def test_who_may_not_alter_the_cluster_is_refused_where_kafka_closes_the_connection() -> None:
    memory = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    (capture,) = config_captures.cluster("UpdateFeatures", "2b-sasl")
    assert capture["response_hex"] is None
    response = config_captures.decode(capture, config_captures.answer(memory, capture))
    assert (response.error_code, response.error_message.endswith(" needs ALTER permission.")) == (31, True)
    for version in (0, 1):
        request = UpdateFeaturesRequest(feature_updates=[Update(feature="group.version")])
        assert memory.call(request, version, principal=KafkaPrincipal("User", "alice")).error_code == 31
