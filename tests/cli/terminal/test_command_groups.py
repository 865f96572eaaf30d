"""Options that stand before the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.command_line import invoke

NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 1}) as running:
        yield running


@pytest.mark.parametrize("line", ["{} topics list", "topics {} list", "topics list {}"])
def test_an_option_may_stand_before_or_after_each_word(broker: Broker, line: str) -> None:
    given = f"-b {broker.bootstrap_servers} -o tsv"
    assert invoke(*line.format(given).split(), code=0).stdout.startswith("orders\t1\t1\t")


@pytest.mark.parametrize(
    "line",
    [
        "-b {nowhere} topics list -b {here}",
        "-b {nowhere} topics -b {here} list",
        "topics -b {nowhere} list -b {here}",
        "--bootstrap-controller {nowhere} topics list -b {here}",
        "--bootstrap-controller {nowhere} topics -b {here} list",
        "-X bootstrap.servers={nowhere} topics list -b {here}",
        "-X bootstrap.servers={nowhere} topics list -X bootstrap.servers={here}",
    ],
)
def test_of_two_places_the_one_nearer_to_the_end_counts(broker: Broker, line: str) -> None:
    words = line.format(here=broker.bootstrap_servers, nowhere=NOWHERE).split()
    found = invoke("-o", "tsv", *words, "-o", "json", code=0)
    assert json.loads(found.stdout)[0]["name"] == "orders"


def test_a_profile_may_stand_before_the_command(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[profiles.here]\nbootstrap.servers = "{broker.bootstrap_servers}"\noutput = "json"\n')
    found = invoke("--profile", "here", "topics", "list", env={"BARNABAS_CONFIG": str(file)}, code=0)
    assert found.json[0]["name"] == "orders"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-b x:1 decode ApiVersions", "--bootstrap-server is no option of 'main decode'"),
        ("-b x:1 storage random-uuid", "--bootstrap-server is no option of 'main storage random-uuid'"),
        ("-o json serve", "--output is no option of 'main serve'"),
        ("-b x:1 kafka-topics --list", "--bootstrap-server must stand after kafka-topics"),
        ("-b x:1 --bootstrap-controller y:1 topics list", "cannot both be given"),
        ("topics -b x:1 --bootstrap-controller y:1 list", "cannot both be given"),
        ("-o nonsense topics list", "'nonsense' is not one of table"),
    ],
)
def test_an_option_that_has_no_effect_there_is_a_usage_error(line: str, message: str) -> None:
    refused = invoke(*line.split(), code=2)
    assert message in refused.stderr


def test_wrong_usage_of_a_judging_command_is_1_wherever_the_option_stands() -> None:
    for line in ("-o nonsense quorum status", "quorum status -o nonsense"):
        assert invoke(*line.split(), code=1).stderr.startswith("Usage:")
