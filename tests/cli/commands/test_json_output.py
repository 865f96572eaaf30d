"""JSON of every command on a node with data: names in camel case, numbers as numbers, times and durations in milliseconds.

Its one rule: a command with --output is in one of the two lists below, so that no new one is forgotten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
from confluent_kafka import Producer

from barnabas.cli.main import main
from barnabas.testing import Broker
from tests.client.admin.group_scenes import commit, member
from tests.command_line import Command, Done, invoke

NODE: dict[str, str | int] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": 0,
}
CONTROLLER = "--bootstrap-controller {controller}"
WALKED = {
    "topics list --internal": "",
    "topics describe": "",
    "topics idle --since 0d --all": "",
    "topics plan-partitions --throughput 1MB --consumers 3": "",
    "topics create made --dry-run": "",
    "topics alter orders --partitions 9 --dry-run": "",
    "topics delete stock --dry-run": "",
    "topics copy orders made --dry-run": "",
    "topics copy-settings orders stock --dry-run": "",
    "records consume orders": "",
    "records produce stock": "a\nb\n",
    "offsets list": "",
    "offsets find orders 1h": "",
    "configs list": "",
    "configs describe orders --all": "",
    "configs diff orders stock": "",
    f"configs history orders {CONTROLLER}": "",
    "configs set orders retention.ms=5 --dry-run": "",
    "configs append orders cleanup.policy=compact --dry-run": "",
    "configs subtract orders cleanup.policy=compact --dry-run": "",
    "configs unset orders retention.ms --dry-run": "",
    "acls list": "",
    "acls by-principal alice": "",
    "acls by-resource topic:orders": "",
    "acls explain alice read topic:orders": "",
    "acls explain alice read topic:o --prefixed": "",
    "acls audit": "",
    "acls create --allow bob --operation read --resource topic:orders --dry-run": "",
    "acls delete --principal alice --dry-run": "",
    "users list": "",
    "users describe alice": "",
    "users set bob --password-stdin --dry-run": "secret\n",
    "users delete alice --dry-run": "",
    "quotas list": "",
    "quotas describe --user alice": "",
    "quotas set --user alice producer_byte_rate=5 --dry-run": "",
    "quotas unset --user alice --all --dry-run": "",
    "groups list": "",
    "groups describe --all": "",
    "groups members --all": "",
    "groups state --all": "",
    "groups copy app app-2 --dry-run": "",
    "groups reset app --all-topics --to-latest --dry-run": "",
    "groups delete app --dry-run": "",
    "groups delete-offsets app --topic orders --dry-run": "",
    "transactions list": "",
    "transactions describe pay": "",
    "transactions find-hanging": "",
    "producers list orders": "",
    "cluster describe": "",
    "cluster brokers": "",
    "cluster features": "",
    "cluster api-versions": "",
    "cluster safe-to-stop 1": "",
    "rehearse --stop 1": "",
    "doctor": "",
    "cluster upgrade group.version=1 --dry-run": "",
    "quorum status": "",
    "log-dirs describe --by dir": "",
    "log-dirs describe --by broker": "",
    "log-dirs describe --by topic": "",
    "log-dirs describe --by replica": "",
    "reassign plan --rebalance": "",
    "reassign status": "",
    "reassign cancel --all --dry-run": "",
    "elect-leaders --all --dry-run": "",
    f"metadata ls {CONTROLLER} cluster/brokers": "",
    f"metadata find {CONTROLLER} cluster/brokers": "",
    f"metadata cat {CONTROLLER} topics/byName/orders/0": "",
    f"metadata diff {CONTROLLER} --from 0": "",
}
ELSEWHERE = {
    "acls test": "needs a file",
    "records delete": "its dry run prints to standard error only",
    "apply": "needs a file",
    "plan": "needs a file",
    "export": "writes a document of its own format",
    "configs rollback": "changes settings; rows as of configs set",
    "groups remove-members": "needs a member; rows as of groups members",
    "transactions abort": "needs a transaction that hangs",
    "cluster downgrade": "rows as of cluster upgrade",
    "cluster unregister": "needs a broker that is gone",
    "cluster up": "starts nodes; rows as of cluster status, in tests/cli/node/test_local_cluster.py",
    "cluster status": "needs a local cluster: tests/cli/node/test_local_cluster.py",
    "quorum add": "needs another controller",
    "quorum remove": "needs another controller",
    "quorum update": "needs another controller",
    "log-dirs move": "needs another log dir",
    "metadata mirror": "writes a directory; its row is in tests/operations/test_metadata_mirror.py",
    "reassign run": "rows as of reassign plan",
    "dump": "names are Kafka's own, of its files",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 3, "stock": 1}, config=NODE) as broker:
        servers = broker.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "pay"})
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(20):
            producer.produce("orders", b'{"a_b": 1}', b"%d" % number, headers=[("snake_case", b"1")])
        producer.flush()
        commit(servers, "app", {("orders", 0): 0, ("stock", 0): 0})
        run = Command(code=0)
        run(broker, "configs", "set", "orders", "retention.ms=1000000", "cleanup.policy=compact,delete", "--yes")
        run(broker, "acls", "create", "--allow", "alice", "--operation", "read", "--resource", "topic:orders")
        run(broker, "acls", "create", "--allow", "User:*", "--operation", "all", "--resource", "group:*")
        run(broker, "users", "set", "alice", "--password-stdin", stdin="secret\n")
        run(broker, "quotas", "set", "--user", "alice", "producer_byte_rate=1000000")
        with member(servers, "members", ["orders"], 3):
            yield broker


def run(broker: Broker, text: str, output: str) -> Done:
    line = text.format(controller=broker.listeners["CONTROLLER"]).split()
    where = () if "--bootstrap-controller" in line else ("-b", broker.bootstrap_servers)
    return invoke(*line, *where, "-o", output, stdin=WALKED[text])


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not (path == () and (name.startswith("kafka-") or name == "lake")):
                yield from _commands(found, (*path, name))
    elif any("--output" in parameter.opts for parameter in command.params):
        yield " ".join(path)


def test_every_command_with_output_is_walked_or_has_a_reason_not_to_be() -> None:
    every = set(_commands(main))
    walked = {max((name for name in every if f"{text} ".startswith(f"{name} ")), key=len) for text in WALKED}
    assert walked | set(ELSEWHERE) == every
    assert not walked & set(ELSEWHERE)


EMPTY = {
    *("transactions find-hanging", "reassign status", "reassign plan --rebalance", "reassign cancel --all --dry-run"),
    "elect-leaders --all --dry-run",
}
"""There is one broker, and nothing hangs."""
CAMEL_CASE = re.compile(r"[a-z][a-zA-Z0-9]*")
FORMATTED = re.compile(r"[-+]?\d[\d.,]*( ?([kMGT]?i?B|ms|s|m|h|d)(/s)?|%| (ms|s|m|h) .*)")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:.*")
DATA = ("configs", "value", "key", "headers", "before", "after")
"""Fields that hold what users named or wrote."""
NUMBERS = re.compile(
    r"timestamp|bytes|size|percent|offset|epoch|lag|.*(Timestamp|Ms|Bytes|Percent|PerSecond|Offset|Epoch|Lag)|bytes[A-Z].*"
)
"""Times, durations, sizes and the like."""


def problems(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from problems(each, path)
    elif isinstance(value, dict):
        for name, member in value.items():
            if not CAMEL_CASE.fullmatch(name):
                yield f"{path}.{name} is not in camel case"
            if NUMBERS.fullmatch(name) and not (member is None or isinstance(member, int | float)):
                yield f"{path}.{name} is not a number: {member!r}"
            if name not in DATA:
                yield from problems(member, f"{path}.{name}")
    elif isinstance(value, str) and (FORMATTED.fullmatch(value) or TIME.fullmatch(value)):
        yield f"{path} is formatted for people: {value!r}"


@pytest.mark.parametrize("text", list(WALKED))
def test_json_is_for_programs(broker: Broker, text: str) -> None:
    done = run(broker, text, "json")
    assert done.exit_code in (0, 2), done.output
    assert not done.stderr.startswith("Usage"), done.output
    found = json.loads(done.stdout)
    assert found or text in EMPTY, text
    assert list(problems(found)) == []
    for line in run(broker, text, "jsonl").stdout.splitlines():
        json.loads(line)


def test_what_is_formatted_is_found() -> None:
    row = {
        "snake_case": 1,
        "lagMs": "5",
        "a": "1.2 MB",
        "b": "2026-01-31T12:00:00Z",
        "c": [{"d": "30s"}],
        "configs": {"E.f": ""},
    }
    assert [text.split()[0] for text in problems(row)] == [".snake_case", ".lagMs", ".a", ".b", ".c.d"]
    assert list(problems({"port": 1, "release": "4.3", "text": "1 of 2", "host": "10.0.0.1", "name": "3days"})) == []
