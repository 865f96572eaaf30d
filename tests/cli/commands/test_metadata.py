"""`barnabas metadata`: the tree of the golden cluster, moments of its log, differences as sentences."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Done, invoke
from tests.storage.golden import extract_node


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_node(tmp_path_factory.mktemp("metadata")) / "d0"


run = partial(invoke, "metadata")


def test_ls_lists_names_with_or_without_the_root(log_dir: Path) -> None:
    assert "topics" in run("ls", log_dir).stdout.splitlines()
    by_name = run("ls", log_dir, "topics/byName").stdout
    assert "d-txn" in by_name.splitlines()
    assert run("ls", log_dir / "__cluster_metadata-0", "/image/topics/byName").stdout == by_name


def test_cat_shows_a_partition_as_json(log_dir: Path) -> None:
    assert json.loads(run("cat", log_dir, "topics/byName/d-txn/0").stdout)["replicas"] == [1, 2, 3]
    row = json.loads(run("cat", log_dir, "topics/byName/d-txn/0", "-o", "json").stdout)[0]
    assert (row["path"], row["value"]["leader_epoch"]) == ("image/topics/byName/d-txn/0", 3)


def test_find_fits_the_last_name(log_dir: Path) -> None:
    found = run("find", log_dir, "configs", "--name", "retention.*").stdout.splitlines()
    assert "image/configs/TOPIC:cfg-alter/retention.ms" in found
    assert all("/retention." in path for path in found)


def test_a_log_is_shown_as_of_an_offset(log_dir: Path) -> None:
    assert run("ls", log_dir, "topics/byName", "--as-of", 10).stdout == ""
    assert run("ls", log_dir, "topics/byName", "--as-of", 1000).stdout != ""


def test_diff_says_what_changed_between_two_moments(log_dir: Path) -> None:
    result = run("diff", log_dir, "--from", 100, "--to", "2026-11-15T19:41", "--exit-code")
    assert result.exit_code == 2
    assert "topic cp-v2 created with 6 partitions" in result.stdout.splitlines()


def test_diff_of_the_same_is_nothing(log_dir: Path) -> None:
    result = run("diff", log_dir, log_dir, "--exit-code")
    assert (result.exit_code, result.stdout) == (0, "")


def test_diff_of_two_files(log_dir: Path) -> None:
    snapshot = log_dir / "__cluster_metadata-0/00000000000000003603-0000000004.checkpoint"
    rows = json.loads(run("diff", log_dir / "bootstrap.checkpoint", snapshot, "-o", "json").stdout)
    assert {("create", "topic"), ("create", "broker"), ("create", "acl")} <= {(r["action"], r["kind"]) for r in rows}
    assert all(list(row) == ["action", "kind", "name", "field", "before", "after", "text"] for row in rows)
    made = next(row for row in rows if (row["kind"], row["name"], row["field"]) == ("topic", "d-txn", "partitions"))
    assert (made["before"], made["after"], made["text"]) == (None, 2, "topic d-txn created with 2 partitions")
    assert ("topic", "cfg-alter", "retention.ms") in {(row["kind"], row["name"], row["field"]) for row in rows}


def test_diff_after_a_restart_shows_what_was_changed_and_counts_the_rest(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        broker.create_topic("orders-0", 2)
        broker.stop()
        shutil.copytree(tmp_path / "data", tmp_path / "before")
        broker.start()
        broker.create_topic("orders-1", 2)
    changed = run("diff", tmp_path / "before", tmp_path / "data")
    assert changed.stdout == "topic orders-1 created with 2 partitions\n"
    assert changed.stderr.startswith(
        "as after every restart: 1 broker registered again, 1 controller registered again, "
    )
    every = run("diff", tmp_path / "before", tmp_path / "data", "--verbose")
    assert "broker 1 registered again" in every.stdout
    assert every.stderr == ""
    rows = json.loads(run("diff", tmp_path / "before", tmp_path / "data", "-o", "json").stdout)
    assert rows[0]["name"] == "orders-1"
    epochs = next(row for row in rows if (row["kind"], row["field"]) == ("broker", "epoch"))
    assert epochs["before"] < epochs["after"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("cat", "topics/nope"), 1, "there is no image/topics/nope"),
        (("cat", "topics"), 1, "image/topics is a directory"),
        (("ls", "--as-of", "yesterday"), 2, "is not an offset, milliseconds, or a time"),
        (("diff", "--nonsense"), 1, "No such option"),
        (("diff",), 1, "nothing to compare with"),
    ],
)
def test_what_is_wrong_is_said(log_dir: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run(arguments[0], log_dir, *arguments[1:])
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_directory_without_a_metadata_log_is_told_what_to_give(tmp_path: Path) -> None:
    result = run("ls", tmp_path)
    assert result.exit_code == 1
    assert "there is no metadata log" in result.stderr
    assert "Try: give a snapshot" in result.stderr


# --- a quorum that runs


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2}, config={"metadata.log.max.record.bytes.between.snapshots": 2000}) as broker:
        yield broker


def live(broker: Broker, *arguments: object) -> Done:
    return run(arguments[0], "--bootstrap-controller", broker.listeners["CONTROLLER"], *arguments[1:])


def test_a_live_quorum_is_shown_as_its_files_are(broker: Broker) -> None:
    assert live(broker, "ls", "topics/byName").stdout == "orders\n"
    assert json.loads(live(broker, "cat", "topics/byName/orders/0").stdout)["replicas"] == [1]
    for path in ("", "topics", "configs", "cluster"):
        found = live(broker, "find", path)
        assert found.exit_code == 0, found.output
        assert found.stdout == run("find", broker.data_dir, path).stdout
    same = run("diff", broker.data_dir, "--bootstrap-controller", broker.listeners["CONTROLLER"], "--exit-code")
    assert (same.exit_code, same.stdout) == (0, "")


def test_a_live_quorum_is_shown_as_of_an_offset_and_compared_with_itself(broker: Broker) -> None:
    assert live(broker, "ls", "topics/byName", "--as-of", 5).stdout == ""
    assert "topic orders created with 2 partitions" in live(broker, "diff", "--from", 5).stdout
    nothing = live(broker, "diff")
    assert (nothing.exit_code, "nothing to compare with" in nothing.stderr) == (1, True)


def test_a_live_log_that_was_cut_begins_with_its_snapshot() -> None:
    settings = {"metadata.log.max.record.bytes.between.snapshots": 1000, "metadata.max.retention.bytes": 3000}
    names = [f"t{number:02d}" for number in range(30)]
    with Broker(config=settings) as broker:
        for name in names:
            broker.create_topic(name)
        assert live(broker, "ls", "topics/byName").stdout.split() == names
        early = live(broker, "ls", "--as-of", 5)
        assert (early.exit_code, "the log begins at offset" in early.stderr) == (1, True)


def test_brokers_and_missing_sources_are_told_what_to_give(broker: Broker, tmp_path: Path) -> None:
    asked = run("ls", "-b", broker.bootstrap_servers)
    assert (asked.exit_code, asked.stdout) == (0, live(broker, "ls").stdout)
    assert (run("ls").exit_code, "Missing argument 'SOURCE'" in run("ls").stderr) == (2, True)
    gone = run("ls", tmp_path / "gone")
    assert (gone.exit_code, "does not exist" in gone.stderr) == (1, True)
    assert run("cat", tmp_path).exit_code == 2
    assert live(broker, "ls", "a", "b").exit_code == 2
    wrong = run("ls", "--bootstrap-controller", broker.bootstrap_servers)
    assert wrong.exit_code == 1


def test_a_log_dir_without_a_metadata_log_is_an_error_that_says_what_to_give(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("no segment")
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"")
    for line in (("ls", tmp_path), ("diff", tmp_path, "--from", "1")):
        refused = run(*line)
        assert (refused.exit_code, "there is no metadata log" in refused.stderr) == (1, True)
        assert f"give {tmp_path / 'bootstrap.checkpoint'}: the log has not begun yet" in refused.stderr
    broker.create_topic("data", 1)
    invoke("records", "produce", "data", "-b", broker.bootstrap_servers, stdin="one\n", code=0)
    refused = run("ls", broker.data_dir / "data-0")
    assert (refused.exit_code, "this is the log of a topic" in refused.stderr) == (1, True)


def test_who_may_not_read_the_live_log_is_told_so() -> None:
    with guarded_broker() as guarded:
        result = live(guarded, "ls")
    assert (result.exit_code, "CLUSTER_AUTHORIZATION_FAILED" in result.stderr) == (1, True)
