"""A misspelt name of any kind: the error names a similar one that exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.similar_names import did_you_mean, similar_names
from barnabas.testing import Broker
from tests.command_line import Command, invoke

ask = Command()
AUTHORIZER: dict[str, str | bool] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 1}, config=AUTHORIZER) as running:
        ask(running, "groups", "reset", "billing", "--topic", "orders", "--to-earliest", "--yes", code=0)
        ask(running, "users", "set", "alice", "--password-stdin", stdin="secret\n", code=0)
        who = ("--allow", "alice", "--operation", "read", "--resource", "topic:other")
        ask(running, "acls", "create", *who, code=0)
        yield running


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("topics lst", "'list'"),
        ("lake aduit", "'audit'"),
        ("topics list --patern x", "'--pattern'"),
        ("topics describe order", "orders"),
        ("topics delete order --yes", "orders"),
        ("topics copy-settings order orders", "orders"),
        ("records consume order", "orders"),
        ("offsets list ordrs", "orders"),
        ("producers list oders", "orders"),
        ("configs describe ordres", "orders"),
        ("log-dirs describe order", "orders"),
        ("elect-leaders order", "orders"),
        ("groups describe biling", "billing"),
        ("groups delete biling --yes", "billing"),
        ("configs set orders retention.sm=1", "retention.ms"),
        ("configs unset orders retention.sm", "retention.ms"),
        ("configs describe topc:orders", "topic"),
        ("topics create new --config retenton.ms=1", "retention.ms"),
        ("cluster upgrade grup.version=1 --yes", "group.version"),
        ("cluster api-versions Fetc", "Fetch"),
        ("raw CreatTopics", "CreateTopics"),
        ("raw CreateTopics '{\"topcs\": []}'", "topics"),
        ("acls create --allow a --operation raed --resource topic:x", "READ"),
        ("acls create --allow a --operation read --resource topc:x", "topic"),
        ("acls by-principal alcie", "User:alice"),
        ("acls list --principal alcie", "User:alice"),
        ("acls delete --principal alcie --yes", "User:alice"),
        ("users describe alcie", "alice"),
        ("users delete alcie --yes", "alice"),
        ("quotas set --user a producer_byte_rat=1", "producer_byte_rate"),
        ("metadata ls topcs", "topics"),
    ],
)
def test_a_misspelt_name_is_answered_with_a_similar_one(broker: Broker, line: str, meant: str) -> None:
    said = " ".join(ask.split(broker, line).stderr.split())
    assert f"id you mean {meant}?" in said or ("id you mean one of:" in said and meant in said), said


def test_raw_does_not_point_to_an_api_that_does_not_exist() -> None:
    refused = invoke("raw", "CreatTopics", code=1)
    assert "Try: list APIs with: barnabas cluster api-versions\n" in refused.stderr
    assert "raw CreatTopics" not in refused.stderr


def test_a_misspelt_profile_and_setting_are_answered_with_similar_ones(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[profiles.production]\n")
    env = {"BARNABAS_CONFIG": str(file)}
    assert "did you mean production?" in invoke("topics", "list", "--profile", "prodction", env=env, code=1).stderr


def test_a_misspelt_client_setting_is_answered_with_a_similar_one(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    ask(broker, "topics", "list", "-X", "security.protcol=SSL", code=0)
    assert "security.protcol is not a known setting; it is ignored; did you mean security.protocol?" in caplog.text


def test_nothing_similar_is_no_hint() -> None:
    assert did_you_mean("xyzzy", ["orders"]) == ""
    assert similar_names("USER_NAMES", ["user-names", "names"]) == ["user-names"]


def test_a_cluster_without_a_similar_topic_is_only_told_how_to_list_them(broker: Broker) -> None:
    refused = ask(broker, "topics", "describe", "xyzzy", code=1)
    assert "Try: list topics with: barnabas topics list" in refused.stderr
