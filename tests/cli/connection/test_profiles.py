"""Which settings a connection gets: options over files over variables over profiles, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from barnabas.cli.connection import profiles
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output
from tests.command_line import Done, invoke

CONFIG = """
default = "local"

[profiles.local]
bootstrap.servers = "local:9092"

[profiles.production]
bootstrap.servers = ["one:9093", "two:9093"]
security.protocol = "SASL_SSL"
request.timeout.ms = 5000
command-config = "production.properties"
output = "json"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "barnabas" / "config.toml"
    path.parent.mkdir()
    path.write_text(CONFIG)
    (path.parent / "production.properties").write_text("client.id=from-file\nsasl.mechanism=PLAIN\n")
    return path


@click.command()
@common_options
def show(connection: Connection, output: Output) -> None:
    click.echo(f"{output.format.value}|{connection.values()}|{connection.address}")


def run(env: dict[str, str], *arguments: str) -> Done:
    return invoke(*arguments, env=env, command=show)


def test_without_anything_it_is_the_node_of_this_machine() -> None:
    connection = profiles.resolve({})
    assert connection.values() == {"bootstrap.servers": "localhost:9092"}
    assert connection.address == "localhost:9092 (by default)"


def test_the_file_is_where_xdg_says() -> None:
    assert profiles.config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/barnabas/config.toml")
    assert profiles.config_path({"XDG_CONFIG_HOME": "/x", "BARNABAS_CONFIG": "/y.toml"}) == Path("/y.toml")


def test_a_profile_has_settings_a_file_and_an_output(config: Path) -> None:
    profile = profiles.load_profile({"BARNABAS_CONFIG": str(config)}, "production")
    assert profile.output == "json"
    values = profiles.resolve({}, profile).values()
    assert values == {
        "bootstrap.servers": "one:9093,two:9093",
        "security.protocol": "SASL_SSL",
        "request.timeout.ms": "5000",
        "client.id": "from-file",
        "sasl.mechanism": "PLAIN",
    }


def test_the_nearer_word_counts(config: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.properties"
    given.write_text("client.id=given\nrequest.timeout.ms=7\n")
    env = {"BARNABAS_CONFIG": str(config), "BARNABAS_CLIENT_ID": "variable", "BARNABAS_SECURITY_PROTOCOL": "SSL"}
    connection = profiles.resolve(
        env,
        profiles.load_profile(env, "production"),
        command_config=given,
        given={"request.timeout.ms": "8"},
        bootstrap_servers="mine:1",
    )
    assert connection.settings["client.id"] == ("given", str(given))
    assert connection.settings["security.protocol"] == ("SSL", "BARNABAS_SECURITY_PROTOCOL")
    assert connection.settings["request.timeout.ms"] == ("8", "-X")
    assert connection.settings["bootstrap.servers"] == ("mine:1", "--bootstrap-server")


def test_controllers_take_the_place_of_the_brokers_of_a_profile(config: Path) -> None:
    profile = profiles.load_profile({"BARNABAS_CONFIG": str(config)})
    values = profiles.resolve({}, profile, bootstrap_controllers="c:9093").values()
    assert values == {"bootstrap.controllers": "c:9093"}


def test_an_unknown_profile_is_told_what_there_is(config: Path) -> None:
    with pytest.raises(Failure, match="no profile 'x'; profiles: local, production"):
        profiles.load_profile({"BARNABAS_CONFIG": str(config)}, "x")


def test_what_is_no_toml_is_told_where(config: Path) -> None:
    config.write_text("default = \n")
    with pytest.raises(Failure, match=r"config.toml: not valid TOML: Invalid value \(at line 1"):
        profiles.load_profile({"BARNABAS_CONFIG": str(config)})


def test_a_command_gets_a_connection_and_an_output(config: Path) -> None:
    env = {"BARNABAS_CONFIG": str(config)}
    assert run(env).stdout.splitlines()[-1].startswith("table|{'bootstrap.servers': 'local:9092'}|local:9092 (profile")
    assert run(env, "--profile", "production").stdout.splitlines()[-1].startswith("json|")
    assert run(env, "--profile", "production", "-o", "yaml", "-b", "x:1").stdout.splitlines()[-1].startswith("yaml|")
    assert run({"BARNABAS_OUTPUT": "tsv"}).stdout.splitlines()[-1].startswith("tsv|")


def test_what_cannot_be_understood_is_2() -> None:
    assert run({"BARNABAS_OUTPUT": "xml"}).exit_code == 2
    assert run({}, "-X", "nonsense").exit_code == 2
    assert run({}, "-b", "a:1", "--bootstrap-controller", "b:1").exit_code == 2
