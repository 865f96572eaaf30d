"""`lake changes --who`: each change has the request that made it, found by its offset."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.testing import Broker, Security
from tests.lake.commands import SECRET, rows, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USERS = {"alice": "a", "bob": "b"}
SET = AlterConfigOpType.SET


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a node that alice and bob have changed: its data, its settings and its audit log in small files."""
    folder = tmp_path_factory.mktemp("node")
    settings = {"barnabas.audit.log.path": str(folder / "audit.log"), "barnabas.audit.log.max.bytes": "4096"}
    (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    security = Security("SASL_PLAINTEXT", ("PLAIN",), USERS)
    broker = Broker(security=security, config=settings, data_dir=folder / "data")
    with broker, sync.Admin(broker.client_config("alice")) as alice, sync.Admin(broker.client_config("bob")) as bob:
        alice.create_topics([NewTopic("orders", 2), NewTopic("audit", 1)])
        for number in range(10):
            op = AlterConfigOp("retention.ms", SET, str(86_400_000 + number))
            (alice, bob)[number % 2].incremental_alter_configs({ConfigResource.topic("orders"): [op]})
        secret = AlterConfigOp("listener.name.sasl_plaintext.ssl.key.password", SET, SECRET)
        bob.incremental_alter_configs({ConfigResource.broker(1): [secret]})
        bob.delete_topics(["audit"])
    return folder


@pytest.fixture(scope="module")
def steps() -> list[list[str]]:
    """The commands of the page on security that need a lake."""
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
    return [shlex.split(line)[2:] for line in re.findall(r"^barnabas lake .+$", page, re.MULTILINE)]


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, node: Path, steps: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Made by the first of these commands, in the folder that has a folder `secured`."""
    directory = tmp_path_factory.mktemp("attributed")
    (directory / "secured").symlink_to(node)
    assert steps[0] == ["run", "secured/data"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        done = run(*steps[0])
    assert done.exit_code == 0, done.stderr
    yield directory / "lake"


def test_the_steps_of_the_security_page_say_who_it_was(
    lake: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.parent)
    assert steps[1:] == [["changes", "--who"]]
    (line,) = [each for each in run(*steps[1]).stdout.splitlines() if "topic audit deleted" in each]
    assert "User:bob" in line and "DeleteTopics" in line


def made_by(found: list[dict[str, Any]], text: str) -> list[str | None]:
    return [row["who"] and row["who"]["principal"] for row in found if text in row["sentence"]]


def test_every_change_of_a_client_is_attributed(lake: Path, node: Path) -> None:
    assert (node / "audit.log.1").is_file()  # some lines are in rotated files
    found = rows(lake, "changes", "--who")
    assert made_by(found, "topic orders created") == ["User:alice"]
    assert made_by(found, "topic audit deleted") == ["User:bob"]
    assert made_by(found, "orders: retention.ms") == ["User:alice", "User:bob"] * 5
    assert made_by(found, "broker 1 created") == ["User:node"]
    assert made_by(found, "controller 1 leads") == [None]
    (row,) = [row for row in found if row["sentence"].startswith("topic audit deleted")]
    assert row["who"] == {
        "principal": "User:bob",
        "address": "127.0.0.1",
        "api": "DeleteTopics",
        "client_id": "barnabas",
    }


def test_names_of_secrets_are_shown_and_values_are_not(lake: Path, node: Path) -> None:
    done = run("changes", "--who", "--kind", "configs", "--lake", lake, "-o", "json")
    assert "ssl.key.password" in done.stdout
    assert SECRET not in done.stdout
    assert all(SECRET not in each.read_text() for each in node.glob("audit.log*"))


def test_the_table_for_people_has_who_too(lake: Path, node: Path) -> None:
    done = run("changes", "--audit-log", node / "audit.log", "--kind", "topics", "--lake", lake)
    assert done.exit_code == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "topic audit deleted" in line]
    assert line.split()[-3:] == ["User:bob", "127.0.0.1", "DeleteTopics"]


def test_lines_of_another_cluster_or_epoch_attribute_nothing(lake: Path, node: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    texts = [each.read_text() for each in node.glob("audit.log*")]
    other.write_text("half a li\n" + "".join(texts).replace('"epoch":1', '"epoch":9'))
    found = rows(lake, "changes", "--audit-log", other)
    created = [row for row in found if row["change"] != "deleted"]
    assert {row["who"] is None for row in created} == {True}
    other.write_text("".join(texts).replace('"cluster":"', '"cluster":"x'))
    assert {row["who"] is None for row in rows(lake, "changes", "--audit-log", other)} == {True}


def test_a_log_that_is_missing_is_an_error(lake: Path, tmp_path: Path) -> None:
    done = run("changes", "--audit-log", tmp_path / "none", "--lake", lake)
    assert done.exit_code == 1
    assert "there is no audit log" in done.stderr


def test_the_history_of_settings_has_who(node: Path) -> None:
    done = run("history", "orders", "--log-dir", node / "data", "-o", "json", group="configs")
    assert [row["principal"] for row in done.json] == ["User:alice", "User:bob"] * 5
    assert {row["api"] for row in done.json} == {"IncrementalAlterConfigs"}
    shown = run("history", "--log-dir", node / "data", "--audit-log", node / "audit.log", group="configs")
    assert shown.stdout.splitlines()[0].split()[-3:] == ["PRINCIPAL", "ADDRESS", "API"]
    assert SECRET not in shown.stdout
