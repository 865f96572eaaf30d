"""The tables of settings hold the facts, and a text becomes the value, or the error, that Kafka makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.config import broker, client_metrics, group, quotas, topic
from barnabas.config.definitions import (
    ConfigError,
    ConfigType,
    Definition,
    Importance,
    UpdateMode,
    parse_all,
    parse_table,
)
from barnabas.config.validators import Check, Range, Validator, ValidList, ValidString, duration_ms, validator_of
from barnabas.config.values import format_value, parse_value
from tests.config.kafka_answers import read

TABLES: dict[str, Mapping[str, Definition]] = {
    "broker": broker.definitions(),
    "topic": topic.definitions(),
    "group": group.definitions(),
    "client_metrics": client_metrics.definitions(),
    "user": quotas.user_or_client_definitions(),
    "ip": quotas.ip_definitions(),
    "dynamic": broker.dynamic_definitions(),
}
FACTS = {
    "broker": "broker",
    "topic": "topic",
    "group": "group",
    "client_metrics": "clientMetrics",
    "user": "userOrClientQuota",
    "ip": "ipQuota",
    "dynamic": "brokerQuota",
}
CHECKS_BY_KIND = {
    "ControllerQuorumVotersValidator": "quorum-voters",
    "ControllerQuorumBootstrapServersValidator": "quorum-servers",
    "ThrottledReplicaListValidator": "throttled-replicas",
    "NonEmptyString": "non-empty",
    "NonNullValidator": "non-null",
    "LambdaValidator": "gzip-level",
    "Validator": "offset-reset",
}


def fact_of(validator: Validator | None) -> Any:
    """A validator as the facts write it, checks that are code by their label."""
    match validator:
        case Range(low, None):
            return {"kind": "Range", "min": low}
        case Range(low, high):
            return {"kind": "Range", "min": low, "max": high}
        case ValidString(values, ignore_case):
            return {
                "kind": "CaseInsensitiveValidString" if ignore_case else "ValidString",
                "validStrings": list(values),
            }
        case ValidList(values, empty_allowed, null_allowed):
            return {
                "kind": "ValidList",
                "validString": {"kind": "ValidString", "validStrings": list(values)},
                "isEmptyAllowed": empty_allowed,
                "isNullAllowed": null_allowed,
            }
        case Check(label, _):
            return label
    return None


@pytest.mark.parametrize("table", TABLES)
def test_a_table_holds_every_setting_of_the_facts_and_no_other(table: str) -> None:
    facts = {fact["name"]: fact for fact in read("configs.json.gz")[FACTS[table]]}
    definitions = {name: each for name, each in TABLES[table].items() if not name.startswith("barnabas.")}
    assert definitions.keys() == facts.keys()
    for name, fact in facts.items():
        definition = definitions[name]
        assert (definition.type.name, int(definition.type)) == (fact["type"], fact["typeCode"]), name
        assert definition.default == fact.get("default"), name
        assert definition.required == ("default" not in fact), name
        assert definition.importance.value == fact["importance"], name
        assert definition.sensitive == fact["sensitive"], name
        assert definition.internal == fact.get("internal", False), name
        if table == "broker":
            assert definition.update.value == fact["update"], name
            assert [synonym.name for synonym in definition.synonyms] == fact.get("synonyms", []), name
        valid = fact.get("valid")
        expected = CHECKS_BY_KIND.get(valid["kind"], valid) if valid else None
        assert fact_of(definition.validator) == expected, name
        for tried in (valid or {}).get("tried", ()):
            text = str(tried)
            if tried in valid["accepts"]:
                assert definition.parse(text) == tried
            else:
                with pytest.raises(ConfigError):
                    definition.parse(text)


@pytest.mark.parametrize("table", ["topic", "group"])
def test_the_defaults_of_topics_and_groups_come_from_the_broker_settings_of_the_facts(table: str) -> None:
    for fact in read("configs.json.gz")[FACTS[table]]:
        expected = fact.get("brokerSynonyms", [{"name": fact["brokerSynonym"]}] if "brokerSynonym" in fact else [])
        synonyms = TABLES[table][fact["name"]].synonyms
        assert [(synonym.name, synonym.factor) for synonym in synonyms] == [
            (each["name"], each.get("factor", 1)) for each in expected
        ]
        assert all(synonym.name in broker.definitions() for synonym in synonyms)


def test_the_throttles_that_exist_only_on_a_running_broker_are_cluster_wide() -> None:
    facts = {fact["name"]: fact["update"] for fact in read("configs.json.gz")["brokerDynamicOnly"]}
    assert {name: each.update.value for name, each in broker.dynamic_definitions().items()} == facts


@pytest.mark.parametrize("table", TABLES)
def test_every_default_is_a_value_its_own_setting_takes(table: str) -> None:
    for definition in TABLES[table].values():
        if definition.default is not None:
            assert definition.format(definition.parse(definition.default)) == definition.default, definition.name


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_has_one_sentence(table: str) -> None:
    for definition in TABLES[table].values():
        assert definition.doc[0].isupper() and definition.doc.endswith("."), definition.name
        assert "\n" not in definition.doc, definition.name


@pytest.mark.parametrize("table", sorted({row[0] for row in read("values.json.gz")}))
def test_texts_become_the_values_and_errors_that_kafka_makes_of_them(table: str) -> None:
    wrong = []
    for _, name, text, normalised, error in (row for row in read("values.json.gz") if row[0] == table):
        definition = TABLES[table][name]
        answer: tuple[str | None, str | None]
        try:
            answer = (definition.format(definition.parse(text)), None)
        except ConfigError as refused:
            answer = (None, refused.message)
        if answer != (normalised, error):
            wrong.append((name, text, answer, (normalised, error)))
    assert wrong == []


def test_an_entry_given_twice_in_a_list_counts_once() -> None:
    assert topic.definitions()["cleanup.policy"].parse("delete,compact,delete") == ("delete", "compact")


def test_a_list_that_is_checked_by_code_keeps_its_entries() -> None:
    assert topic.definitions()["leader.replication.throttled.replicas"].parse("1:2,1:2") == ("1:2", "1:2")


def test_a_password_keeps_its_blanks_and_is_never_shown() -> None:
    definition = broker.definitions()["ssl.key.password"]
    assert definition.parse(" secret ") == " secret "
    assert definition.format(" secret ") is None


def test_digits_of_other_scripts_are_digits() -> None:
    assert parse_value("n", "١٢", ConfigType.INT) == 12


def test_a_value_must_be_a_number_within_its_type() -> None:
    assert parse_value("n", "-32768", ConfigType.SHORT) == -32768
    with pytest.raises(ConfigError, match="Not a number of type SHORT"):
        parse_value("n", "-32769", ConfigType.SHORT)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (7, "7"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (1.234e-5, "1.234E-5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_value_is_written_as_java_writes_it(value: Any, text: str | None) -> None:
    assert format_value(value) == text


def test_an_error_always_names_its_key() -> None:
    assert str(ConfigError("a.key", "Host is odd")) == "a.key: Host is odd"
    assert str(ConfigError("a.key", "a.key is odd")) == "a.key is odd"


def test_a_setting_that_must_be_given_is_asked_for_by_name() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_all(broker.definitions(), {"process.roles": "broker"})
    assert refused.value.key == "node.id"
    assert refused.value.message == 'Missing required configuration "node.id" which has no default value.'


def test_of_several_bad_values_the_first_in_kafkas_order_is_named() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_all(topic.definitions(), {"min.compaction.lag.ms": "x", "retention.ms": "y"})
    assert refused.value.key == "retention.ms"


def test_a_table_row_says_all_that_a_definition_holds() -> None:
    table = parse_table(
        'a.b long ! low per-broker internal 1..9 <- c.d e.f*60\n    What it does.\n# c\n\nx list "" high\n    X.'
    )
    assert list(table) == ["a.b", "x"]
    definition = table["a.b"]
    assert definition == Definition(
        name="a.b",
        type=ConfigType.LONG,
        default=None,
        importance=Importance.LOW,
        doc="What it does.",
        required=True,
        internal=True,
        update=UpdateMode.PER_BROKER,
        validator=Range(1, 9),
        synonyms=definition.synonyms,
    )
    assert definition.synonyms == (("c.d", 1), ("e.f", 60))
    assert table["x"].default == ""


def test_a_validator_that_does_not_exist_is_a_mistake_in_the_table() -> None:
    with pytest.raises(ValueError, match="no validator"):
        validator_of("sometimes")


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("PT1H", 3_600_000), ("P1DT0.005S", 86_400_005), ("-PT-1H", 3_600_000), ("PT-0.5S", -500), ("P1W", None)],
)
def test_a_duration_is_read_as_milliseconds(text: str, expected_ms: int | None) -> None:
    assert duration_ms(text) == expected_ms


def test_the_receiver_of_client_metrics_is_empty_or_the_log() -> None:
    definition = broker.definitions()["barnabas.telemetry.receiver"]
    assert definition.default_value() == ""
    assert definition.parse("log") == "log"
    with pytest.raises(ConfigError, match=r"barnabas\.telemetry\.receiver"):
        definition.parse("file")


def test_importing_the_settings_imports_no_event_loop_and_reads_no_table() -> None:
    script = (
        "import sys, barnabas.config.server, barnabas.config.resolve as r\n"
        "assert 'asyncio' not in sys.modules and 'ipaddress' not in sys.modules\n"
        "assert r.broker.definitions.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
