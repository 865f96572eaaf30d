"""`barnabas console` and `serve --console` as processes: the address they print answers, and they stop with a signal."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.command_line import Process, invoke, spawn

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


def overview(line: str, path: str = "") -> str:
    """The page at the address of a printed line, or a page below it."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(line.split()[1], timeout=60) as answer:
        found, address = answer.read(), answer.url
    if path:
        with opener.open(address + path, timeout=60) as answer:
            found = answer.read()
    return str(found.decode())


def test_the_address_that_it_prints_answers_and_a_signal_stops_it() -> None:
    with (
        Broker(topics=["orders"]) as broker,
        Process("console", "-b", broker.bootstrap_servers, "--listen", "127.0.0.1:0") as process,
    ):
        line = process.until("console:")
        assert "(read-only)" in line
        assert "Brokers running" in overview(line)
        assert process.stop().exit_code == 0


def test_several_profiles_and_addresses_are_clusters_of_one_console(tmp_path: Path) -> None:
    with Broker(topics=["of-one"]) as one, Broker(topics=["of-two"]) as two:
        file = tmp_path / "config.toml"
        file.write_text(
            "".join(
                f'[profiles.{name}]\nbootstrap.servers = "{each.bootstrap_servers}"\n'
                for name, each in (("first", one), ("second", two))
            )
        )
        words = ("--profile", "first", "--profile", "second", "-b", one.bootstrap_servers, "--listen", "127.0.0.1:0")
        with Process("console", *words, "--allow-changes", env={"BARNABAS_CONFIG": str(file)}) as process:
            line = process.until("console:")
            assert "(changes are allowed)" in line
            clusters = overview(line)
            for name in ("first", "second", one.bootstrap_servers):
                assert f">{name}</a>" in clusters
            assert "of-one" in overview(line, "c/first/topics")
            page = overview(line, "c/second/topics/of-two?tab=groups")
            assert "of-two" in page and "switch cluster" in page
            assert process.stop().exit_code == 0


def test_a_node_with_a_console_prints_its_address_and_ends_it_with_itself(tmp_path: Path) -> None:
    arguments = ("--override", f"log.dirs={tmp_path}/data", "--override", LISTENERS, "--console", "0")
    with Process("serve", *arguments) as process:
        line = process.until("console:")
        assert "Brokers running" in overview(line)
        done = process.stop()
        assert (done.exit_code, "Traceback" in done.stderr) == (0, False), done.stderr
        with pytest.raises(OSError):
            overview(line)


def test_the_console_of_a_node_knows_its_audit_log(tmp_path: Path) -> None:
    settings = (f"log.dirs={tmp_path}/data", LISTENERS, f"barnabas.audit.log.path={tmp_path}/audit.log")
    options = [word for each in settings for word in ("--override", each)]
    with Process("serve", *options, "--console", "0") as process:
        assert ">Who</th>" in overview(process.until("console:"), "/history")
        assert process.stop().exit_code == 0


def test_an_address_that_is_taken_is_an_error_in_a_line() -> None:
    with Broker() as broker:
        done = spawn("console", "-b", broker.bootstrap_servers, "--listen", broker.bootstrap_servers)
        assert done.exit_code == 1
        assert "cannot listen on" in done.stderr
        assert "Traceback" not in done.stderr


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    assert "HOST:PORT" in invoke("console", "--listen", "nowhere", code=2).stderr
    (tmp_path / "key.pem").write_text("")
    assert "belong together" in invoke("console", "--key", tmp_path / "key.pem", code=2).stderr
    assert "--report needs --lake" in invoke("console", "--report", tmp_path, code=2).stderr
    short = invoke("console", env={"BARNABAS_CONSOLE_TOKEN": "short"}, code=1)
    assert "at least 16 characters" in short.stderr
    controllers = {"BARNABAS_BOOTSTRAP_CONTROLLERS": "127.0.0.1:1"}
    assert "needs brokers" in invoke("console", env=controllers, code=1).stderr
    gssapi = ("-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=GSSAPI")
    assert "cannot log in with GSSAPI" in invoke("console", *gssapi, code=1).stderr
