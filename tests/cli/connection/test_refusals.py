"""Refused requests: errors name the operation, the resource and the principal, or the node that is read-only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.connection.refusals import permission_advice, principal_of
from barnabas.client.settings import load
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.required_operations import REQUIRED, required_operation
from barnabas.testing import Broker
from barnabas.wire import APIS
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Process, invoke

ask = Command()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with guarded_broker() as broker:
        yield broker


@pytest.mark.parametrize(
    ("line", "operation", "resource"),
    [
        ("topics delete secret --yes", "DESCRIBE", "topic secret"),
        ("offsets list secret", "DESCRIBE", "topic secret"),
        ("configs describe secret", "DESCRIBE_CONFIGS", "topic secret"),
        ("groups describe secret", "DESCRIBE", "group secret"),
        ("acls list", "DESCRIBE", "the cluster"),
        ("users list", "DESCRIBE", "the cluster"),
        ("quotas list", "DESCRIBE_CONFIGS", "the cluster"),
        ("cluster upgrade group.version=1 --yes", "ALTER", "the cluster"),
        ("quorum status", "DESCRIBE", "the cluster"),
        ("raw ListPartitionReassignments", "DESCRIBE", "the cluster"),
    ],
)
def test_a_refusal_names_principal_operation_and_resource(
    guarded: Broker, line: str, operation: str, resource: str
) -> None:
    refused = ask.split(guarded, line, code=1)
    assert "AUTHORIZATION_FAILED" in refused.output
    advice = refused.stderr.splitlines()[-1]
    assert advice.startswith(
        f"Try: User:ANONYMOUS lacks the permission {operation} on {resource}. Ask an administrator"
    )
    assert "(who needs ALTER on the cluster)" in advice
    option = operation.lower().replace("_", "-")
    assert f"barnabas acls create --allow User:ANONYMOUS --operation {option} --resource " in advice


def test_deleting_a_topic_that_may_not_be_seen_is_not_nothing_to_delete(guarded: Broker) -> None:
    assert "nothing to delete" not in ask.split(guarded, "topics delete secret --yes", code=1).stderr
    assert "nothing to delete" in ask.split(guarded, "topics delete none --if-exists --yes", code=0).stderr


def test_the_principal_is_the_login_name_or_nobody_knows_it() -> None:
    at = {"bootstrap.servers": "localhost:1"}
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="eve" password="e";'
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    assert principal_of(load(at)) == "User:ANONYMOUS"
    assert principal_of(load({**at, **login})) == "User:eve"
    assert principal_of(load({**at, "security.protocol": "SSL", "ssl.keystore.location": "key.pem"})) is None
    unknown = permission_advice("DeleteTopics", ResourceType.TOPIC, ["a", "b"], None)
    assert unknown.startswith("the principal of this client lacks the permission DELETE on topic a, b.")
    assert unknown.endswith("--allow PRINCIPAL --operation delete --resource topic:a --resource topic:b")


def test_the_table_of_operations_names_apis_that_exist() -> None:
    assert REQUIRED.keys() <= {api.name for api in APIS.values()}
    assert required_operation("Produce", ResourceType.TOPIC) is AclOperation.WRITE
    assert required_operation("Nothing", ResourceType.TOPIC) is None


# --- a read-only node


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    made, copy = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("copy") / "data"
    with Broker({"orders": 1}, data_dir=made) as broker:
        ask(broker, "records", "produce", "orders", stdin="one\n", code=0)
        ask(broker, "groups", "reset", "app", "--topic", "orders", "--to-earliest", "--yes", code=0)
        ask(broker, "users", "set", "alice", "--password-stdin", stdin="secret\n", code=0)
        ask(broker, "quotas", "set", "--user", "alice", "producer_byte_rate=1", code=0)
        shutil.copytree(made, copy)  # while it runs: after a shutdown no broker could take a topic
    ready = copy.parent / "ready"
    with Process("serve", "--read-only", copy, "--port", "0", "--ready-file", ready) as process:
        yield process.until_ready(ready)["bootstrap.servers"]


@pytest.mark.parametrize(
    "line",
    [
        "topics create fresh",
        "topics alter orders --partitions 9 --yes",
        "topics delete orders --yes",
        "records produce orders",
        "records delete orders --all --yes",
        "records consume orders --group other",
        "configs set orders retention.ms=1000 --yes",
        "acls create --allow alice --operation read --resource topic:orders",
        "quotas set --user alice producer_byte_rate=2",
        "users delete alice --yes",
        "groups delete app --yes",
        "groups reset app --topic orders --to-latest --yes",
        "groups delete-offsets app --topic orders --yes",
        "transactions abort --topic orders --partition 0 --producer-id 0 --producer-epoch 0 --yes",
        "cluster downgrade group.version=0 --yes",
        "cluster unregister 1 --yes",
        "reassign throttle --clear",
        'raw DeleteGroups \'{"groupsNames": ["app"]}\' --to group:app',
    ],
)
def test_a_change_through_a_read_only_node_says_that_it_is_read_only(read_only: str, line: str) -> None:
    refused = ask.split(read_only, line, stdin="value\n", code=1)
    advice = refused.stderr.splitlines()[-1]
    assert advice.startswith("Try: This node serves "), refused.output
    assert "read-only: nothing can be changed. Connect to a node of the running cluster" in advice
    assert "a policy of the cluster" not in refused.output


def test_a_policy_violation_of_another_node_is_no_read_only_node(tmp_path: Path) -> None:
    with Broker({"compacted": 1}) as broker:
        ask(broker, "configs", "set", "compacted", "cleanup.policy=compact", code=0)
        ask(broker, "records", "produce", "compacted", "-K", ":", stdin="k:v\n", code=0)
        refused = ask(broker, "records", "delete", "compacted", "--all", "--yes", code=1)
    assert "a policy of the cluster forbids it" in refused.stderr


# --- controllers and brokers that are taken for each other


def test_a_controller_given_as_a_broker_is_called_a_controller_and_names_the_brokers() -> None:
    with Broker() as broker:
        controller = broker.listeners["CONTROLLER"]
        refused = ask(controller, "topics", "list", code=1)
        assert f"Error: {controller} (--bootstrap-server): this is a controller, not a broker\n" in refused.stderr
        assert f"-b {broker.bootstrap_servers};" in refused.stderr
        assert f"--bootstrap-controller {controller}" in refused.stderr
        assert "too old" not in refused.stderr


def test_a_broker_given_as_a_controller_is_called_a_broker() -> None:
    with Broker() as broker:
        refused = invoke("cluster", "describe", "--bootstrap-controller", broker.bootstrap_servers, code=1)
    assert "Try: this is a broker: pass it with -b" in refused.stderr


@pytest.mark.parametrize("line", ["topics list", "groups list", "groups state --all", "transactions list"])
def test_what_controllers_do_not_serve_is_an_error_and_not_an_old_broker(line: str) -> None:
    with Broker() as broker:
        controller = broker.listeners["CONTROLLER"]
        refused = invoke(*line.split(), "--bootstrap-controller", controller, code=1)
    assert "-b" in refused.stderr.splitlines()[-1]
    assert "too old" not in refused.stderr


def test_a_topic_is_created_through_a_controller() -> None:
    with Broker() as broker:
        invoke("topics", "create", "fresh", "--bootstrap-controller", broker.listeners["CONTROLLER"], code=0)
