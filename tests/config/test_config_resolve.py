"""The value of a setting and its sources are those that Kafka's DescribeConfigs gives."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config import broker, server
from barnabas.config.definitions import ConfigType
from barnabas.config.resolve import (
    ConfigSource,
    Entry,
    Layers,
    broker_texts,
    broker_value,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
    describe_topic_defaults,
    group_value,
    topic_defaults,
    topic_value,
)
from tests.config.kafka_answers import read

CASES = read("describe.json.gz")


def describe(case: dict[str, Any]) -> list[Entry]:
    layers, own, names = Layers(*case["layers"]), case["own"], case["names"] or ()
    match case["kind"]:
        case "broker":
            return describe_broker(layers, names)
        case "broker_default":
            return describe_broker_default(layers, names)
        case "topic":
            return describe_topic(own, layers, names)
        case "group":
            return describe_group(own, layers, names)
    return describe_client_metrics(own, names)


@pytest.mark.parametrize("case", CASES, ids=[f"{at}-{case['kind']}" for at, case in enumerate(CASES)])
def test_settings_are_described_as_kafka_describes_them(case: dict[str, Any]) -> None:
    described = {
        entry.name: [
            entry.name,
            entry.value,
            entry.source,
            entry.read_only,
            entry.sensitive,
            entry.type,
            [list(synonym) for synonym in entry.synonyms],
        ]
        for entry in describe(case)
        if not entry.name.startswith("barnabas.")
    }
    assert described == {entry[0]: entry for entry in case["entries"]}


def test_a_value_in_minutes_or_hours_becomes_milliseconds() -> None:
    assert topic_value("retention.ms", {}, Layers(static={"log.retention.minutes": "5"})) == 300_000
    assert topic_value("retention.ms", {}, Layers(static={"log.retention.hours": "2"})) == 7_200_000
    assert topic_value("segment.ms", {}, Layers()) == 604_800_000


def test_topics_share_the_entries_that_they_inherit() -> None:
    layers = Layers(static={"log.retention.ms": "5"})
    defaults = describe_topic_defaults(layers)
    entries = {entry.name: entry for entry in describe_topic({"segment.ms": "7"}, layers, defaults=defaults)}
    assert list(entries) == list(defaults)
    assert [name for name, entry in entries.items() if entry is not defaults[name]] == ["segment.ms"]
    assert list(entries.values()) == describe_topic({"segment.ms": "7"}, layers)


def test_any_negative_retention_is_forever() -> None:
    assert topic_value("retention.ms", {}, Layers(static={"log.retention.hours": "-5"})) == -1


def test_the_strongest_layer_wins() -> None:
    layers = Layers({"message.max.bytes": "1"}, {"message.max.bytes": "2"}, {"message.max.bytes": "3"})
    assert broker_value("message.max.bytes", layers) == 1
    assert broker_value("message.max.bytes", layers._replace(broker={})) == 2
    assert broker_value("message.max.bytes", Layers(static=layers.static)) == 3
    assert topic_value("max.message.bytes", {}, layers) == 1
    assert topic_value("max.message.bytes", {"max.message.bytes": "7"}, layers) == 7


def test_the_defaults_of_a_topic_are_typed() -> None:
    defaults = topic_defaults(Layers())
    assert defaults["cleanup.policy"] == ("delete",)
    assert defaults["min.cleanable.dirty.ratio"] == 0.5
    assert defaults["preallocate"] is False
    assert defaults["internal.segment.bytes"] is None


def test_a_group_works_within_bounds_that_were_drawn_after_it_was_set() -> None:
    layers = Layers(static={"group.consumer.min.session.timeout.ms": "45000"})
    assert group_value("consumer.session.timeout.ms", {"consumer.session.timeout.ms": "70000"}, layers) == 60_000
    assert group_value("consumer.session.timeout.ms", {"consumer.session.timeout.ms": "10"}, layers) == 45_000
    assert group_value("streams.num.standby.replicas", {"streams.num.standby.replicas": "9"}, layers) == 2
    assert group_value("share.isolation.level", {}, layers) == "read_uncommitted"


def test_what_is_not_known_might_be_a_secret() -> None:
    (entry,) = describe_broker(Layers(static={"super.users": "User:admin"}), ["super.users"])
    assert (entry.value, entry.sensitive, entry.type) == (None, True, ConfigType.UNKNOWN)
    assert entry.synonyms == (("super.users", None, ConfigSource.STATIC_BROKER_CONFIG),)


def test_a_secret_is_not_shown_wherever_it_was_set() -> None:
    name = "listener.name.a.plain.sasl.jaas.config"
    layers = Layers(broker={name: "x"}, static={"sasl.jaas.config": "y"})
    entries = describe_broker(layers, [name, "sasl.jaas.config"])
    assert len(entries) == 2
    assert all(synonym.value is None for entry in entries for synonym in entry.synonyms)
    assert all(entry.value is None for entry in entries)


def test_what_a_topic_sets_is_shown_even_if_it_is_internal_or_not_known() -> None:
    configs = {"internal.segment.bytes": "9", "from.the.future": "10"}
    shown = {entry.name: entry for entry in describe_topic(configs, Layers(), list(configs))}
    assert (shown["internal.segment.bytes"].value, shown["internal.segment.bytes"].source) == ("9", 1)
    unknown = shown["from.the.future"]
    assert (unknown.value, unknown.source, unknown.sensitive, unknown.type) == (None, 1, True, ConfigType.UNKNOWN)
    assert describe_topic({}, Layers(), list(configs)) == []


def test_internal_settings_are_shown_only_when_they_were_set() -> None:
    name = "internal.metadata.log.segment.bytes"
    assert broker.definitions()[name].internal
    assert describe_broker(Layers(), [name]) == []
    assert [entry.value for entry in describe_broker(Layers(static={name: "9"}), [name])] == ["9"]


def test_every_entry_has_its_sentence() -> None:
    assert all(entry.doc for entry in describe_topic({}, Layers()) + describe_broker(Layers(static={"node.id": "1"})))


def test_the_texts_in_force_are_checked_like_a_file() -> None:
    layers = Layers(
        {"log.retention.ms": "5"}, {"log.retention.ms": "6"}, {**server.EMBEDDED_DEFAULTS, "log.retention.hours": "1"}
    )
    texts = broker_texts(layers)
    assert texts["log.retention.ms"] == "5"
    assert "log.retention.hours" not in texts
    assert server.load(texts).get("log.retention.ms") == 5
