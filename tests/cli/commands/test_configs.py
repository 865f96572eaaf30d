"""`barnabas configs` against a node: shown, changed, compared, followed through the log, and set back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from barnabas.cli.connection.config_resources import complete_resource, parse_resource
from barnabas.cli.main import main
from barnabas.client.admin.config_values import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from barnabas.metadata.image import EMPTY_IMAGE, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader, Published
from barnabas.operations.configs.alterations import resource_text
from barnabas.operations.configs.history import events_of, rollback
from barnabas.storage.offline import OfflineBatch, read_partition
from barnabas.storage.snapshots import list_snapshots, snapshot_path
from barnabas.testing import Broker
from barnabas.wire.records.metadata import ConfigRecord
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, invoke
from tests.storage.golden import extract_node


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


configs = Command("configs", code=0)
rows = configs.rows


# --- resources


@pytest.mark.parametrize(
    "text", ["topic:orders", "broker:1", "broker-logger:2", "client-metrics:app", "group:a:b", "brokers"]
)
def test_a_resource_is_written_as_it_is_read(text: str) -> None:
    assert resource_text(parse_resource(text)) == text


def test_a_word_is_a_topic_and_kafkas_plurals_will_do() -> None:
    assert parse_resource("orders") == parse_resource("topics:orders") == ConfigResource.topic("orders")


@pytest.mark.parametrize("text", ["table:orders", "topic:", "broker:", "broker:one"])
def test_what_is_no_resource_is_said_before_anything_is_asked(text: str) -> None:
    assert "Invalid value" in configs(None, "describe", text, code=2).stderr


# --- look


def test_settings_that_were_set_are_described_with_their_source_and_synonyms(broker: Broker) -> None:
    broker.create_topic("described", config={"retention.ms": "1000"})
    (row,) = rows(broker, "describe", "described")
    assert (row["resource"], row["name"], row["value"]) == ("topic:described", "retention.ms", "1000")
    assert row["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert row["synonyms"][0] == {"source": "DYNAMIC_TOPIC_CONFIG", "name": "retention.ms", "value": "1000"}
    table = configs(broker, "describe", "described").stdout.splitlines()
    assert table[0].split() == ["RESOURCE", "NAME", "VALUE", "SOURCE", "SYNONYMS", "DEFAULT"]
    assert table[1].split()[-2:] == ["DYNAMIC_TOPIC_CONFIG:retention.ms=1000", "604800000"]


def test_all_settings_or_those_of_a_pattern_are_described(broker: Broker) -> None:
    broker.create_topic("patterned")
    assert len(rows(broker, "describe", "patterned", "--all")) > 25
    found = rows(broker, "describe", "patterned", "--name", "retention.*", "--docs")
    assert [row["name"] for row in found] == ["retention.bytes", "retention.ms"]
    assert all(row["documentation"] for row in found)


def test_passwords_are_never_shown(broker: Broker) -> None:
    table = configs(broker, "describe", "broker:1", "--name", "ssl.key.password").stdout
    assert "[hidden]" in table
    (row,) = rows(broker, "describe", "broker:1", "--name", "ssl.key.password")
    assert row["value"] is None
    assert row["isSensitive"]
    refused = configs(broker, "set", "brokers", "ssl.key.password=hunter2", code=1)
    assert "hunter2" not in refused.output


def test_a_password_of_a_broker_is_in_the_log_but_not_in_its_history(broker: Broker) -> None:
    name = "listener.name.plaintext.ssl.key.password"
    said = configs(broker, "set", "broker:1", f"{name}=hunter2")
    history = configs(None, "history", "broker:1", "--name", name, "--log-dir", str(broker.data_dir))
    back = configs(broker, "unset", "broker:1", name)
    assert "hunter2" not in said.output + history.output + back.output
    assert [line.split()[-2:] for line in history.stdout.splitlines()[1:]] == [["-", "[hidden]"]]


def test_an_unknown_topic_is_named_with_kafkas_error_and_advice(broker: Broker) -> None:
    said = configs(broker, "describe", "missing", code=1).stderr
    assert "topic:missing: UNKNOWN_TOPIC_OR_PARTITION" in said
    assert "barnabas topics list" in said


def test_what_is_found_is_shown_beside_what_is_not(broker: Broker) -> None:
    broker.create_topic("found", config={"retention.ms": "7"})
    result = configs(broker, "describe", "found", "missing", "broker:99", "-o", "tsv", code=1)
    assert result.stdout.startswith("topic:found\tretention.ms\t7\t")
    assert "topic:missing" in result.stderr
    assert "broker:99" in result.stderr


def test_a_refused_connection_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    said = configs(None, "describe", "any", "-b", address, "-X", "default.api.timeout.ms=300", code=1).stderr
    assert said.startswith(f"Error: {address} (--bootstrap-server): ")


def test_resources_and_names_are_completed(broker: Broker) -> None:
    broker.create_topic("completed")
    ctx = click.Context(main, info_name="barnabas")
    ctx.params = {"bootstrap_server": broker.bootstrap_servers}
    param = click.Argument(["resource"])
    assert complete_resource(ctx, param, "comp") == ["completed"]
    assert complete_resource(ctx, param, "topic:comp") == ["topic:completed"]
    assert complete_resource(ctx, param, "broker") == ["brokers", "broker:", "broker-logger:"]


def test_resources_are_listed(broker: Broker) -> None:
    broker.create_topic("listed")
    assert "topic:listed" in configs(broker, "list").stdout.split()
    assert {row["resourceType"] for row in rows(broker, "list", "--type", "broker")} == {"BROKER"}


# --- change


def test_settings_are_set_appended_subtracted_and_unset(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("changed")
    said = configs(broker, "set", "changed", "retention.ms=5", "cleanup.policy=compact")
    assert "set retention.ms of topic:changed to 5; currently 604800000 (DEFAULT_CONFIG)" in said.stderr
    configs(broker, "append", "changed", "cleanup.policy=delete")
    configs(broker, "subtract", "changed", "cleanup.policy=compact")
    (row,) = rows(broker, "unset", "changed", "retention.ms")
    assert (row["operation"], row["before"], row["error"]) == ("DELETE", "5", None)
    file = tmp_path / "more.properties"
    file.write_text("segment.ms = 1234\n# a comment\n")
    configs(broker, "set", "changed", "--file", str(file))
    found = {row["name"]: row["value"] for row in rows(broker, "describe", "changed")}
    assert found == {"cleanup.policy": "delete", "segment.ms": "1234"}


def test_a_dry_run_is_checked_by_the_broker_and_changes_nothing(broker: Broker) -> None:
    broker.create_topic("tried")
    assert "would set retention.ms" in configs(broker, "set", "tried", "retention.ms=5", "--dry-run").stderr
    assert rows(broker, "describe", "tried") == []
    assert rows(broker, "set", "tried", "retention.ms=soon", "--dry-run", code=1)[0]["error"] == "INVALID_CONFIG"


def test_a_name_that_is_nearly_right_is_suggested(broker: Broker) -> None:
    broker.create_topic("typed")
    assert "did you mean retention.ms?" in configs(broker, "set", "typed", "retenton.ms=5", code=1).stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("set", "any"), "KEY=VALUE"),
        (("set", "any", "retention.ms"), "KEY=VALUE"),
        (("unset", "any"), "Missing argument"),
        (("append", "any", "=x"), "KEY=VALUE"),
    ],
)
def test_changes_that_are_not_understood_end_with_2(broker: Broker, args: tuple[str, ...], said: str) -> None:
    assert said in configs(broker, *args, code=2).stderr


def test_a_setting_that_is_given_twice_is_refused(broker: Broker) -> None:
    assert "given more than once: a" in configs(broker, "set", "any", "a=1", "a=2", code=1).stderr


def test_without_permission_nothing_is_changed_and_the_error_says_what_is_missing() -> None:
    with guarded_broker() as guarded:
        said = configs(guarded, "set", "secret", "retention.ms=1", code=1).stderr
        assert "topic:secret: TOPIC_AUTHORIZATION_FAILED" in said
        assert "lacks the permission DESCRIBE_CONFIGS on topic secret" in said
        assert "barnabas acls create --allow User:ANONYMOUS" in said


# --- compare


def test_two_resources_are_compared(broker: Broker) -> None:
    broker.create_topic("left", config={"retention.ms": "5"})
    broker.create_topic("right", config={"retention.ms": "6"})
    (row,) = rows(broker, "diff", "left", "right")
    assert (row["name"], row["value"], row["otherValue"]) == ("retention.ms", "5", "6")
    assert "topic:right" in configs(broker, "diff", "left", "right", "--exit-code", code=2).stdout.splitlines()[0]
    configs(broker, "diff", "left", "left", "--exit-code")
    assert "are of different types" in configs(broker, "diff", "left", "broker:1", code=1).stderr
    configs(broker, "diff", "left", "nonsense:x", code=1)


def test_a_resource_is_compared_with_the_defaults(broker: Broker) -> None:
    broker.create_topic("own", config={"retention.ms": "5", "segment.ms": "604800000"})
    (row,) = rows(broker, "diff", "own")
    assert (row["name"], row["value"], row["default"]) == ("retention.ms", "5", "604800000")
    of_broker = {row["name"]: row["default"] for row in rows(broker, "diff", "broker:1")}
    assert of_broker["offsets.topic.num.partitions"] == "50"


def test_defaults_are_in_the_unit_of_the_setting() -> None:
    times = {
        "log.retention.ms": "50000",
        "log.roll.ms": "60000",
        "log.roll.jitter.ms": "7",
        "log.flush.interval.ms": "9",
    }
    defaults = {"retention.ms": "604800000", "segment.ms": "604800000", "segment.jitter.ms": "0"}
    with Broker(config=times) as broker:
        broker.create_topic("t")
        found = {row["name"]: row["default"] for row in rows(broker, "diff", "t")}
        assert found == {**defaults, "flush.ms": "9223372036854775807"}
        of_broker = {row["name"]: row["default"] for row in rows(broker, "diff", "broker:1")}
        assert {name: of_broker[name] for name in times} == {
            "log.retention.ms": "604800000",
            "log.roll.ms": "604800000",
            "log.roll.jitter.ms": "0",
            "log.flush.interval.ms": "9223372036854775807",
        }
        described = {row["name"]: row["default"] for row in rows(broker, "describe", "t", "--all")}
        assert {name: described[name] for name in defaults} == defaults
    with Broker(config={"log.retention.minutes": "5"}) as broker:
        (row,) = rows(broker, "describe", "broker:1", "--name", "log.retention.minutes")
        assert (row["value"], row["default"]) == ("5", "10080")


# --- the past


def test_history_tells_each_change_with_offset_time_before_and_after(broker: Broker) -> None:
    broker.create_topic("past")
    configs(broker, "set", "past", "retention.ms=5", "segment.ms=7")
    configs(broker, "set", "past", "retention.ms=6")
    configs(broker, "unset", "past", "segment.ms")
    found = rows(None, "history", "past", "--log-dir", str(broker.data_dir))
    assert [(row["name"], row["before"], row["after"]) for row in found] == [
        ("retention.ms", None, "5"),
        ("segment.ms", None, "7"),
        ("retention.ms", "5", "6"),
        ("segment.ms", "7", None),
    ]
    assert found[0]["offset"] < found[2]["offset"] < found[3]["offset"]
    assert found[0]["timestamp"] > 1_700_000_000_000
    live = ("--bootstrap-controller", broker.listeners["CONTROLLER"])
    assert rows(None, "history", "past", *live) == found
    only = rows(None, "history", "past", "--name", "seg*", "--log-dir", str(broker.data_dir))
    assert {row["name"] for row in only} == {"segment.ms"}


def test_a_change_has_the_offset_of_its_record_everywhere(broker: Broker) -> None:
    topic, log_dir = "one-batch", ("--log-dir", str(broker.data_dir))
    live = ("--bootstrap-controller", broker.listeners["CONTROLLER"])
    broker.create_topic(topic, partitions=2, config={"retention.ms": "1000", "segment.ms": "2000"})
    dumped = [
        (row["offset"], row["value"]["name"])
        for row in Command("dump").rows(None, broker.data_dir / "__cluster_metadata-0")
        if row.get("type") == "ConfigRecord" and row["value"]["resourceName"] == topic
    ]
    assert len(dumped) == 2
    for source in (log_dir, live):
        assert [(row["offset"], row["name"]) for row in rows(None, "history", topic, *source)] == dumped
    configs(broker, "set", topic, "retention.ms=5000")
    for offset, _ in dumped:  # within the batch, which was applied as a whole
        back = configs(broker, "rollback", topic, *log_dir, "--to", str(offset), "--dry-run")
        assert "would set retention.ms of topic:one-batch to 1000" in back.stderr
        for words in ((str(broker.data_dir),), live):
            shown = invoke("metadata", "ls", *words, f"configs/TOPIC:{topic}", "--as-of", str(offset), code=0)
            assert shown.stdout.split() == ["retention.ms", "segment.ms"]
    before = invoke("metadata", "ls", broker.data_dir, "topics/byName", "--as-of", str(dumped[0][0] - 2), code=0)
    assert topic not in before.stdout.split()


def test_rollback_shows_and_does_what_leads_back(broker: Broker) -> None:
    broker.create_topic("back", config={"retention.ms": "5"})
    log_dir = ("--log-dir", str(broker.data_dir))
    configs(broker, "set", "back", "retention.ms=6")
    offset = str(rows(None, "history", "back", *log_dir)[-1]["offset"])
    configs(broker, "set", "back", "retention.ms=7", "segment.ms=8")
    tried = configs(broker, "rollback", "back", *log_dir, "--to", offset, "--dry-run").stderr
    assert "would set retention.ms of topic:back to 6" in tried
    assert "would unset segment.ms of topic:back" in tried
    configs(broker, "rollback", "back", *log_dir, "--to", offset)
    assert {row["name"]: row["value"] for row in rows(broker, "describe", "back")} == {"retention.ms": "6"}
    assert "has the same settings as then" in configs(broker, "rollback", "back", *log_dir, "--to", offset).stderr
    live = ("--bootstrap-controller", broker.listeners["CONTROLLER"])
    configs(None, "rollback", "back", *live, "--to", str(int(offset) - 1), "--yes")
    assert {row["name"]: row["value"] for row in rows(broker, "describe", "back")} == {"retention.ms": "5"}


def test_rollback_refuses_a_moment_before_the_topic_and_warns_of_another_topic(broker: Broker) -> None:
    log_dir = ("--log-dir", str(broker.data_dir))
    broker.create_topic("reborn", config={"retention.ms": "5"})
    offset = str(rows(None, "history", "reborn", *log_dir)[-1]["offset"])
    assert "the topic did not exist then" in configs(broker, "rollback", "reborn", *log_dir, "--to", "5", code=1).stderr
    assert "does not reach back" in configs(broker, "rollback", "reborn", *log_dir, "--to", "2000-01-01", code=1).stderr
    broker.delete_topic("reborn")
    broker.create_topic("reborn")
    again = configs(broker, "rollback", "reborn", *log_dir, "--to", offset, "--dry-run")
    assert "has been deleted and created again since then" in again.stderr
    assert [row["after"] for row in rows(None, "history", "reborn", *log_dir)] == ["5", None]


def test_the_log_of_another_cluster_is_refused(broker: Broker) -> None:
    broker.create_topic("mine", config={"retention.ms": "5"})
    with Broker(["mine"]) as other:
        log_dir = ("--log-dir", str(broker.data_dir))
        said = configs(other, "rollback", "mine", *log_dir, "--to", "2030-01-01", code=1).stderr
        assert f"this log belongs to cluster {broker.cluster_id}, not to {other.cluster_id}" in said


def test_a_source_that_is_no_log_and_a_moment_that_is_none_are_said(broker: Broker, tmp_path: Path) -> None:
    assert "there is no metadata log" in configs(None, "history", "--log-dir", str(tmp_path), code=1).stderr
    assert (
        configs(broker, "history", "t", code=0).stdout
        == configs(broker, "history", "t", "--log-dir", str(broker.data_dir), code=0).stdout
    )
    said = configs(broker, "rollback", "t", "--log-dir", str(broker.data_dir), "--to", "yesterday", code=2).stderr
    assert "'yesterday' is not an offset" in said


def cut_log(broker: Broker, directory: Path) -> Path:
    """A copy of a node's metadata log that begins with its last snapshot, as after retention."""
    log = broker.data_dir / "__cluster_metadata-0"
    last = list_snapshots(log)[-1]
    directory.mkdir()
    snapshot_path(directory, last).write_bytes(snapshot_path(log, last).read_bytes())
    batches = [item for item in read_partition(log, last.end_offset - 5) if isinstance(item, OfflineBatch)]
    first = batches[0].header.base_offset
    assert first > 0
    (directory / f"{first:020d}.log").write_bytes(b"".join(item.data for item in batches))
    return directory


def test_history_of_a_log_that_was_cut_begins_with_its_snapshot(tmp_path: Path) -> None:
    settings = {"metadata.log.max.record.bytes.between.snapshots": 2000, "metadata.max.retention.bytes": 3000}
    with Broker(config=settings) as broker:
        for number in range(24):
            broker.create_topic(f"t{number:02d}", config={"retention.ms": str(number + 1)})
        of_files = ("-b", broker.bootstrap_servers, "--log-dir", str(cut_log(broker, tmp_path / "cut")))
        for source in (of_files, ("--bootstrap-controller", broker.listeners["CONTROLLER"])):
            found = [row for row in rows(None, "history", *source) if row["name"] == "retention.ms"]
            assert [row["after"] for row in found] == [str(number + 1) for number in range(24)]
            offsets = [row["offset"] for row in found]
            assert offsets[0] == offsets[1]
            assert found[0]["timestamp"] > 1_700_000_000_000
            for early in ("5", "2026-01-01", str(offsets[0] - 1)):
                said = configs(None, "rollback", "t00", *source, "--to", early, code=1).stderr
                assert "does not reach back that far" in said
            assert (
                "has the same settings as then"
                in configs(None, "rollback", "t00", *source, "--to", str(offsets[0])).stderr
            )


def test_the_history_of_apache_kafkas_log_is_told(tmp_path: Path) -> None:
    log_dir = extract_node(tmp_path) / "d0"
    found = rows(None, "history", "cfg-alter", "--log-dir", str(log_dir))
    assert len({row["offset"] for row in found}) > 3
    values: dict[str, str | None] = {}
    for row in found:
        assert values.get(row["name"]) == row["before"]
        values[row["name"]] = row["after"]


def test_a_snapshot_is_where_history_begins_when_the_log_is_cut() -> None:
    loader = MetadataLoader()
    record = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5")
    first = loader.load_snapshot([record], Provenance(99, 1, 1000))
    (event,) = events_of(Published(EMPTY_IMAGE, first.image, None))
    assert (event.offset, event.timestamp_ms, event.before, event.after) == (99, 1000, None, "5")
    changed = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="6")
    (published,) = loader.load([MetadataBatch(100, 100, 1, 2000, [changed])])
    (event,) = events_of(published)
    assert (event.offset, event.before, event.after) == (100, "5", "6")


def test_a_password_is_set_back_only_if_the_log_says_that_it_changed() -> None:
    one = ConfigResource.broker(1)
    own = ConfigSource.DYNAMIC_BROKER_CONFIG
    present = {"ssl.key.password": ConfigEntry("ssl.key.password", None, own, is_sensitive=True)}
    same = rollback(one, {"ssl.key.password": "x"}, {"ssl.key.password": "x"}, present)
    assert same == []
    (op,) = rollback(one, {"ssl.key.password": "x"}, {"ssl.key.password": "y"}, present)
    assert (op.type, op.value) == (AlterConfigOpType.SET, "x")
    (op,) = rollback(one, {}, {"ssl.key.password": "y"}, present)
    assert op.type is AlterConfigOpType.DELETE
