"""`barnabas rehearse` on a node that believes in more brokers than there are, and on its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers
from tests.command_line import Command, invoke


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with with_absent_brokers({1: "a", 2: "b", 3: "b"}) as running:
        create_topic(running, "orders", [1, 2], [1, 3])
        create_topic(running, "alone", [1])
        yield running


rehearse = Command("rehearse")


def test_what_would_happen_is_shown_and_nothing_is_changed(broker: Broker) -> None:
    before = Command("metadata")(broker, "cat", "topics/byName/alone/0", code=0).stdout
    found = rehearse(broker, "--kill", "1")
    assert found.exit_code == 2, found.output
    assert found.stdout.splitlines()[0].split() == ["WHAT", "HAPPENS", "RECORDS", "REFUSED"]
    assert "the metadata quorum would be left: nothing could be decided" in found.stderr
    assert "Nothing was changed" in found.stderr
    assert Command("metadata")(broker, "cat", "topics/byName/alone/0", code=0).stdout == before


def test_things_happen_in_the_order_of_the_options(broker: Broker) -> None:
    found = rehearse.rows(broker, "--stop", "2", "--kill", "3", "--start", "2", "--stop", "2", "--start", "3")
    steps = [row["step"] for row in found if row["kind"] == "step"]
    assert [each for each in steps if each.startswith("node")] == [
        *("node 2 stops", "node 3 dies", "node 2 returns", "node 2 stops", "node 3 returns")
    ]
    partitions = {(row["topic"], row["partition"]): row["after"] for row in found if row["kind"] == "partition"}
    assert partitions["orders", 0]["isr"] == [1]
    assert [row["after"]["status"] for row in found if row["kind"] == "broker"] == ["ok", "fenced", "ok"]


def test_files_are_enough(broker: Broker, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "alone", "partition": 0, "replicas": [2]}]}))
    found = invoke("rehearse", str(broker.data_dir), "--reassign", str(plan), "--records")
    assert found.exit_code == 0, found.output
    assert "PartitionChangeRecord" in found.stdout
    assert "1 -> 2" in found.stdout
    assert "an unknown number of bytes to copy" in found.stderr


def test_a_declared_cluster_shows_its_records_without_secrets(broker: Broker, tmp_path: Path) -> None:
    declared = tmp_path / "cluster.yaml"
    declared.write_text("users:\n  u: {SCRAM-SHA-512: {password: {env: NOT_SET}}}\n")
    found = rehearse.rows(broker, "--apply", str(declared))
    (record,) = [row for row in found if row["kind"] == "record"]
    assert (record["type"], record["record"]["salt"]) == ("UserScramCredentialRecord", "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Give something that happens, such as --kill 3."),
        (["--delete", "--kill", "1"], "--delete needs --apply."),
        (["--fail-log-dir", "1"], "is not NODE:ID"),
        (["--kill", "9"], "node 9: there is no such node; there are 1, 2, 3"),
        (["--kill-rack", "x"], "rack x: there is no such rack; there are a, b"),
        (["--start", "1"], "node 1: it runs already"),
    ],
)
def test_wrong_usage_is_said(broker: Broker, arguments: list[str], text: str) -> None:
    found = rehearse(broker, *arguments)
    assert found.exit_code == 1, found.output
    assert text in found.stderr


def test_files_that_are_none_are_refused(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")
    found = rehearse(broker, "--reassign", str(tmp_path / "plan.json"))
    assert (found.exit_code, "plan.json" in found.stderr) == (1, True), found.output
    (tmp_path / "server.properties").write_text("no.such.setting\nprocess.roles=x\n")
    found = rehearse(broker, "--kill", "1", "--server-properties", str(tmp_path / "server.properties"))
    assert (found.exit_code, "process.roles" in found.stderr) == (1, True), found.output
    found = rehearse(broker, str(broker.data_dir), "--kill", "1")
    assert (found.exit_code, "Give either SOURCE or a running cluster." in found.stderr) == (1, True), found.output
