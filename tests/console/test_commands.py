"""The command that a plan shows: typed in a terminal, it does what the plan says. Without a browser."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.testing import Broker
from tests.command_line import invoke
from tests.console.running_console import NAME, RunningConsole, entry
from tests.console.shop import AUTHORIZED

ACL = {"principal": "User:it's me", "resource": "topic:made", "pattern": "prefixed", "permission": "deny"}


class Typed(NamedTuple):
    """A form, whether its command asks for a confirmation, and what it reads."""

    path: str
    form: Mapping[str, str]
    asks: bool = False
    stdin: str = ""


FORMS = (
    Typed("/topics", {"topic": "made", "partitions": "1", "replication_factor": "1", "configs": "retention.ms=7000"}),
    Typed("/topics/made/partitions", {"partitions": "2"}, True),
    Typed("/topics/made/config", {"key": "retention.ms", "value": "86400000"}),
    Typed("/topics/made/config", {"key": "retention.ms", "unset": "1"}),
    Typed("/topics/made/rollback", {"offset": "the first change"}),
    Typed("/topics/made/replication-factor", {"replication_factor": "1"}),
    *(
        Typed("/group/reset", {"id": "billing it's", "rule": rule, "value": value, "topics": topics}, True)
        for rule, value, topics in (
            ("earliest", "", ""),
            ("latest", "", "made"),
            ("offset", "1", "made:0"),
            ("shift", "-1", "made:0\nmade:1"),
            ("time", "2026-01-31T12:00Z", ""),
        )
    ),
    Typed("/group/delete", {"id": "billing it's"}, True),
    Typed("/access/acl", {**ACL, "operations": "READ\nWRITE", "host": "10.0.0.1"}),
    Typed("/access/acl/delete", {**ACL, "operations": "READ\nWRITE", "host": "10.0.0.1"}, True),
    Typed("/access/user", {"user": "carol", "password": "secret", "mechanism": "SCRAM-SHA-256"}, stdin="secret\n"),
    Typed("/access/user", {"user": "carol", "mechanism": "SCRAM-SHA-256", "delete": "1"}, True),
    Typed("/access/quota", {"user": "carol", "client_id": "<default>", "key": "producer_byte_rate", "value": "1024"}),
    Typed("/access/quota", {"user": "carol", "client_id": "<default>", "key": "producer_byte_rate", "value": ""}),
    Typed("/reassignments", {"goal": "rebalance", "topics": "made", "throttle": "1MB"}, True),
    Typed("/reassignments/throttle", {"clear": "1"}),
    Typed("/topics/made/delete", {}, True),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}, config=AUTHORIZED) as broker:
        yield broker


def test_each_command_of_a_plan_can_be_typed_and_has_the_effect_of_the_plan(broker: Broker) -> None:
    with (
        RunningConsole(entry(broker), allow_changes=True) as console,
        Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin,
    ):
        console.enter()
        for path, form, asks, stdin in FORMS:
            fields = dict(form)
            if path.endswith("/rollback"):
                page = console.get(f"/c/{NAME}/topics/made?tab=settings&history=1").text
                fields["offset"] = re.findall(r'name="offset" value="(\d+)"', page)[-1]
            if path == "/group/reset" and fields["rule"] == "earliest":
                admin.alter_consumer_group_offsets(
                    "billing it's", {TopicPartition("made", 0): 2, TopicPartition("made", 1): 2}
                )
                with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
                    for partition in (0, 1, 0, 1):
                        producer.send("made", b"x", partition=partition)
            planned = console.post(f"/c/{NAME}{path}", **fields)
            assert planned.status == 303, planned.text
            plan = html.unescape(console.get(planned.headers["location"]).text)
            commands = plan.partition('id="command">')[2].partition("</code>")[0]
            for command in commands.split(" && "):
                words = [*(["--yes"] if asks else []), *(["--password-stdin"] if stdin else [])]  # there is no terminal
                done = invoke(*shlex.split(command)[1:], *words, stdin=stdin)
                assert done.exit_code == 0, (command, done.output)
            expect(admin, path, fields)


def expect(admin: Admin, path: str, fields: Mapping[str, str]) -> None:
    """Look at what was changed."""
    offsets = {"earliest": {0: 0, 1: 0}, "latest": {0: 2, 1: 2}, "offset": {0: 1}, "shift": {0: 0, 1: 1}}
    if path == "/group/reset" and (wanted := offsets.get(fields["rule"])):
        found = admin.list_consumer_group_offsets(["billing it's"])["billing it's"]
        assert not isinstance(found, Exception)
        assert {number: found[TopicPartition("made", number)].offset for number in wanted} == wanted  # type: ignore[union-attr]
    elif path == "/group/delete":
        assert [each.group_id for each in admin.list_groups()] == []
    elif path == "/access/acl":
        found_acls = admin.describe_acls()
        assert {(each.operation.name, each.host, each.principal) for each in found_acls} == {
            (name, "10.0.0.1", "User:it's me") for name in ("READ", "WRITE")
        }
    elif path == "/access/acl/delete":
        assert admin.describe_acls() == []
    elif path == "/access/user":
        assert (list(admin.describe_user_scram_credentials()) == ["carol"]) == ("password" in fields)
    elif path == "/access/quota":
        wanted_quotas = [{"producer_byte_rate": 1024}] if fields["value"] else []
        assert list(admin.describe_client_quotas().values()) == wanted_quotas
    elif path == "/topics/made/config":
        resource = ConfigResource.topic("made")
        config = admin.describe_configs([resource])[resource]
        assert isinstance(config, dict)
        assert (config["retention.ms"].source is resource.own_source) == ("unset" not in fields)
    elif path == "/topics/made/delete":
        assert "made" not in {each.name for each in admin.list_topics()}
    elif path.startswith("/topics"):
        assert "made" in {each.name for each in admin.list_topics()}
