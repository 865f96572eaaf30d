"""`--port`: the first listener for clients moves, and what is told of it with it."""

from __future__ import annotations

import pytest

from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import address_text, reachable_text
from barnabas.config.server import load, on_port


def test_the_embedded_default_moves_and_its_controller_takes_a_free_port() -> None:
    config = load(None, on_port(5, None, {"node.id": "3"}))
    assert [(each.listener_name, each.port) for each in config.listeners] == [("PLAINTEXT", 5), ("CONTROLLER", 0)]
    assert config.node_id == 3


def test_listeners_of_the_caller_keep_all_but_that_port() -> None:
    listeners = "CONTROLLER://:7,FIRST://[::1]:8,SECOND://host:9"
    assert on_port(0, None, {"listeners": listeners})["listeners"] == "CONTROLLER://:7,FIRST://[::1]:0,SECOND://host:9"


def test_of_a_file_only_that_port_changes_where_it_is_listened_on_and_where_it_is_told() -> None:
    given = {
        "controller.listener.names": "ctl",
        "listeners": "CTL://:1, out://:2,IN://:3",
        "advertised.listeners": "IN://a:4,OUT://b:5",
    }
    assert on_port(9, given, {}) == {
        "listeners": "CTL://:1,out://:9,IN://:3",
        "advertised.listeners": "IN://a:4,OUT://b:9",
    }


def test_a_file_without_listeners_has_kafka_s_one() -> None:
    assert on_port(9, {}, {"a": "b"}) == {"a": "b", "listeners": "PLAINTEXT://:9"}


def test_a_controller_alone_has_no_such_port() -> None:
    with pytest.raises(ConfigError, match="listeners"):
        on_port(9, {"controller.listener.names": "C", "listeners": "C://:1"}, {})


def test_every_interface_is_reached_by_the_loopback_one() -> None:
    assert [reachable_text(host, 1) for host in ("", "0.0.0.0", "::", "::1", "kafka")] == [
        *("127.0.0.1:1", "127.0.0.1:1", "[::1]:1", "[::1]:1", "kafka:1"),
    ]
    assert address_text("", 1) == ":1"
