"""Changes of settings that delete records say so, with an estimate, and are confirmed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType
from barnabas.operations.configs.data_loss import changed, loss
from barnabas.testing import Broker
from tests.command_line import Command, Done

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
DEFAULTS = {"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete"}


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({}, {"retention.ms": "3600000"}, "records older than 1h are deleted"),
        ({}, {"retention.ms": "-1"}, None),
        ({"retention.ms": "-1"}, {"retention.ms": "604800000"}, "records older than 7d are deleted"),
        ({}, {"retention.bytes": "1000"}, "the oldest records of partitions larger than 1 kB are deleted"),
        ({"retention.bytes": "1000"}, {"retention.bytes": "2000"}, None),
        ({"retention.bytes": "1000"}, {"retention.bytes": "-1"}, None),
        ({"cleanup.policy": "compact"}, {"retention.ms": "1"}, None),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}, "records older than 7d are deleted"),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}, "records older than 7d are deleted"),
        ({}, {"cleanup.policy": "compact"}, "compaction deletes all but the last record of each key"),
        ({}, {"retention.ms": "soon"}, None),
        ({}, {"retention.ms": "0"}, "records older than 0s are deleted"),
    ],
)
def test_what_deletes_records(before: dict[str, str], after: dict[str, str], reason: str | None) -> None:
    found = loss({**DEFAULTS, **before}, {**DEFAULTS, **before, **after})
    assert (found and found.reason) == reason


def test_changes_of_lists_and_removals_lead_to_effective_values() -> None:
    ops = [
        AlterConfigOp("cleanup.policy", AlterConfigOpType.APPEND, "compact"),
        AlterConfigOp("retention.ms", AlterConfigOpType.DELETE),
    ]
    after = changed({"cleanup.policy": "delete", "retention.ms": "-1"}, ops, DEFAULTS)
    assert after == {"cleanup.policy": "delete,compact", "retention.ms": "604800000"}
    ops = [AlterConfigOp("cleanup.policy", AlterConfigOpType.SUBTRACT, "compact")]
    assert changed(after, ops, DEFAULTS)["cleanup.policy"] == "delete"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"log.retention.hours": "72"}) as running:
        yield running


def topic_with_records(broker: Broker, name: str, **config: str) -> None:
    broker.create_topic(name, partitions=2, config={key.replace("_", "."): value for key, value in config.items()})
    now_ms = int(time.time() * 1000)
    lines = "".join(f'{{"key": "k", "value": "{n}", "timestamp": {now_ms - n * DAY_MS}}}\n' for n in (4, 3, 2, 1, 0))
    Command("records")(broker, "produce", name, "--format", "json", "--partition", "1", stdin=lines, code=0)


run = Command()


def settings(broker: Broker, topic: str) -> dict[str, str]:
    return {row["name"]: row["value"] for row in run.rows(broker, "configs", "describe", topic)}


def refused(broker: Broker, *words: str, stdin: str = "") -> Done:
    """Without a terminal the question cannot be answered, so nothing is changed."""
    done = run(broker, *words, stdin=stdin)
    assert done.exit_code == 1, done.output
    assert "This cannot be confirmed" in done.stderr
    return done


def test_a_shorter_retention_is_confirmed(broker: Broker) -> None:
    topic_with_records(broker, "shorter", retention_ms="-1")
    words = ("configs", "set", "shorter", f"retention.ms={DAY_MS + HOUR_MS}")
    warning = "warning: topic shorter: records older than 1d 1h are deleted (up to 3 of 5 records, about "
    assert warning in refused(broker, *words).stderr
    dry = run(broker, *words, "--dry-run", code=0)
    assert warning in dry.stderr
    assert settings(broker, "shorter") == {"retention.ms": "-1"}
    assert warning in run(broker, *words, "--yes", code=0).stderr
    assert settings(broker, "shorter") == {"retention.ms": str(DAY_MS + HOUR_MS)}


def test_unsetting_falls_back_to_what_the_broker_has(broker: Broker) -> None:
    topic_with_records(broker, "unset", retention_ms="-1")
    found = refused(broker, "configs", "unset", "unset", "retention.ms")
    assert "records older than 3d are deleted (up to 2 of 5 records" in found.stderr


def test_sizes_and_policies_count_too(broker: Broker) -> None:
    topic_with_records(broker, "sized", retention_ms="-1")
    found = refused(broker, "configs", "set", "sized", "retention.bytes=1")
    assert "partitions larger than 1 B are deleted (up to 5 of 5 records" in found.stderr
    found = refused(broker, "configs", "append", "sized", "cleanup.policy=compact")
    assert "compaction deletes all but the last record of each key (it has 5 records, " in found.stderr
    topic_with_records(broker, "compacted", cleanup_policy="compact", retention_ms=str(DAY_MS))
    found = refused(broker, "configs", "append", "compacted", "cleanup.policy=delete")
    assert "topic compacted: records older than 1d are deleted" in found.stderr


def test_brokers_are_named_for_all_their_topics(broker: Broker) -> None:
    found = refused(broker, "configs", "set", "brokers", "log.retention.ms=60000")
    assert "topics without settings of their own on all brokers: records older than 1m are deleted" in found.stderr
    run(broker, "configs", "set", "brokers", "log.cleaner.threads=2", code=0)


def test_nothing_is_asked_if_nothing_is_deleted(broker: Broker) -> None:
    broker.create_topic("empty")
    run(broker, "configs", "set", "empty", "retention.ms=1", "cleanup.policy=compact", code=0)
    topic_with_records(broker, "longer", retention_ms=str(30 * DAY_MS))
    for setting in (f"retention.ms={60 * DAY_MS}", f"retention.ms={20 * DAY_MS}", "retention.bytes=100000"):
        assert "warning" not in run(broker, "configs", "set", "longer", setting, code=0).stderr


def test_a_rollback_that_deletes_records_is_confirmed(broker: Broker) -> None:
    topic_with_records(broker, "back", retention_ms="60000000")
    log_dir = ("--log-dir", str(broker.data_dir))
    (first,) = run.rows(None, "configs", "history", "back", *log_dir)
    run(broker, "configs", "set", "back", "retention.ms=-1", code=0)
    words = ("configs", "rollback", "back", *log_dir, "--to", str(first["offset"]))
    assert "records older than 16h 40m are deleted (up to 4 of 5 records" in refused(broker, *words).stderr
    run(broker, *words, "--dry-run", code=0)
    assert settings(broker, "back") == {"retention.ms": "-1"}
    run(broker, *words, "--yes", code=0)
    assert settings(broker, "back") == {"retention.ms": "60000000"}


def test_copied_settings_that_delete_records_are_confirmed(broker: Broker) -> None:
    broker.create_topic("model", config={"retention.ms": "60000"})
    topic_with_records(broker, "copy", retention_ms="-1")
    words = ("topics", "copy-settings", "model", "copy")
    assert (
        "warning: topic copy: records older than 1m are deleted (up to 4 of 5 records" in refused(broker, *words).stderr
    )
    assert "warning: topic copy" in run(broker, *words, "--dry-run", code=0).stderr
    run(broker, *words, "--yes", code=0)
    assert settings(broker, "copy") == {"retention.ms": "60000"}


def test_plan_and_apply_say_which_records_are_deleted(broker: Broker) -> None:
    topic_with_records(broker, "planned", retention_ms="-1")
    topic_with_records(broker, "gone")
    text = f"topics: {{planned: {{configs: {{retention.ms: {DAY_MS}}}}}, gone: {{state: absent}}}}"
    for words in (("plan",), ("apply",), ("apply", "--dry-run")):
        said = run(broker, *words, "-f", "-", stdin=text).stderr
        assert "warning: topic planned: records older than 1d are deleted (up to 4 of 5 records, about " in said
        assert "warning: 1 topic with 5 records, " in said
    assert settings(broker, "planned") == {"retention.ms": "-1"}
