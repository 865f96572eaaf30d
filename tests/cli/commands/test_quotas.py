"""`barnabas quotas` against a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


quotas = Command("quotas", code=0)
rows = quotas.rows


def test_quotas_are_set_shown_and_removed(broker: Broker) -> None:
    said = quotas(broker, "set", "--user", "ann", "producer_byte_rate=1e6", "request_percentage=12.5")
    assert "set producer_byte_rate of user ann to 1000000; currently not set" in said.stderr
    assert quotas(broker, "describe", "--user", "ann", "-o", "tsv").stdout == (
        "user ann\tproducer_byte_rate\t1000000.0\nuser ann\trequest_percentage\t12.5\n"
    )
    (row,) = rows(broker, "unset", "--user", "ann", "request_percentage")
    assert (row["key"], row["before"], row["value"], row["error"]) == ("request_percentage", 12.5, None, None)
    quotas(broker, "unset", "--user", "ann", "--all")
    assert rows(broker, "describe", "--user", "ann") == []
    assert "no quotas to remove" in quotas(broker, "unset", "--user", "ann", "--all", code=1).stderr


def test_users_clients_addresses_and_their_defaults_have_quotas(broker: Broker) -> None:
    for entity in (
        ("--user", "bob"),
        ("--user", "bob", "--client-id", "app"),
        ("--user-default", "--client-id-default"),
        ("--client-id-default",),
    ):
        quotas(broker, "set", *entity, "consumer_byte_rate=5")
    quotas(broker, "set", "--ip", "127.0.0.9", "connection_creation_rate=7")
    quotas(broker, "set", "--ip-default", "connection_creation_rate=8")
    found = {row["entity"] for row in rows(broker, "list")}
    assert found >= {"user (default), client-id (default)", "user bob, client-id app", "ip (default)", "ip 127.0.0.9"}
    assert {row["entity"] for row in rows(broker, "list", "--user", "bob")} == {"user bob", "user bob, client-id app"}
    assert {row["entity"] for row in rows(broker, "list", "--user", "bob", "--strict")} == {"user bob"}
    assert {row["entity"] for row in rows(broker, "list", "--with", "ip")} == {"ip (default)", "ip 127.0.0.9"}
    (row,) = rows(broker, "describe", "--ip-default")
    assert row["entityParts"] == [{"entityType": "ip", "entityName": None}]


def test_a_dry_run_is_checked_by_the_broker_and_sets_nothing(broker: Broker) -> None:
    assert "would set" in quotas(broker, "set", "--user", "dry", "producer_byte_rate=1", "--dry-run").stderr
    assert rows(broker, "describe", "--user", "dry") == []
    (row,) = rows(broker, "set", "--user", "dry", "producer_byte_rate=-1", "--dry-run", code=1)
    assert row["error"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("describe",), "Give an entity with --user"),
        (("set", "producer_byte_rate=1"), "Give an entity with --user"),
        (("set", "--user", "u", "producer_byte_rate"), "KEY=VALUE"),
        (("set", "--user", "u", "producer_byte_rate=fast"), "'fast' is not a number"),
        (("set", "--user", "u", "--user-default", "producer_byte_rate=1"), "cannot both"),
        (("set", "--user", "", "producer_byte_rate=1"), "--user-default"),
        (("unset", "--user", "u"), "or --all"),
    ],
)
def test_what_is_not_understood_ends_with_2(broker: Broker, args: tuple[str, ...], said: str) -> None:
    assert said in quotas(broker, *args, code=2).stderr


def test_a_quota_that_does_not_exist_and_a_number_without_end_are_refused(broker: Broker) -> None:
    assert rows(broker, "set", "--user", "odd", "no_such_rate=1", code=1)[0]["error"] == "INVALID_REQUEST"
    quotas(broker, "set", "--user", "odd", "producer_byte_rate=inf", code=1)


def test_without_permission_the_error_says_what_is_missing() -> None:
    with guarded_broker() as guarded:
        assert "CLUSTER_AUTHORIZATION_FAILED" in quotas(guarded, "list", code=1).stderr
