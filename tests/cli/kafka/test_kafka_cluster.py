"""`kafka-cluster`, `kafka-groups` and `kafka-client-metrics` against a node; tests/interop compares them with Kafka's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.command_line import Command, Script, invoke

run = Script()
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2}) as started:
        yield started


@pytest.fixture
def in_a_hurry(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text("default.api.timeout.ms=500\nrequest.timeout.ms=300\n")
    return path


def cluster(broker: Broker, *arguments: str, code: int = 0) -> tuple[str, str]:
    done = invoke("kafka-cluster", arguments[0], "-b", broker.bootstrap_servers, *arguments[1:], code=code)
    return done.stdout, done.stderr


def test_the_id_of_the_cluster_is_shown(broker: Broker) -> None:
    out, _ = cluster(broker, "cluster-id")
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", out)


def test_endpoints_of_brokers_are_listed(broker: Broker) -> None:
    out, _ = cluster(broker, "list-endpoints", "--include-fenced-brokers")
    header, row = out.splitlines()
    assert header == "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  "
    assert row.split() == ["1", *broker.bootstrap_servers.split(":"), "null", "unfenced", "broker"]


def test_a_broker_that_is_not_registered_is_refused_with_kafkas_exception(broker: Broker) -> None:
    _, err = cluster(broker, "unregister", "--id", "77", code=1)
    assert err == (
        "org.apache.kafka.common.errors.BrokerIdNotRegisteredException: Broker ID 77 is not currently registered\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "too few arguments"),
        (("nonsense",), "invalid choice: 'nonsense' (choose from 'cluster-id', 'unregister', 'list-endpoints')"),
        (
            ("cluster-id",),
            "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required",
        ),
        (
            ("cluster-id", "-b", NOWHERE, "-C", NOWHERE),
            "argument --bootstrap-controller/-C: not allowed with argument --bootstrap-server/-b",
        ),
        (("unregister", "-b", NOWHERE), "argument --id/-i is required"),
        (
            ("unregister", "-b", NOWHERE, "-i", "x"),
            "argument --id/-i: could not convert 'x' to Integer (For input string: \"x\")",
        ),
        (("cluster-id", "--nonsense"), "unrecognized arguments: '--nonsense'"),
    ],
)
def test_wrong_usage_has_the_message_of_argparse4j(arguments: tuple[str, ...], message: str) -> None:
    done = invoke("kafka-cluster", *arguments, code=1)
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("", f"kafka-cluster: error: {message}")


def test_a_file_that_does_not_exist_and_two_files_are_refused(broker: Broker) -> None:
    assert cluster(broker, "cluster-id", "--command-config", "/nowhere/x", code=1) == ("", "/nowhere/x\n")
    out, err = cluster(broker, "cluster-id", "--config", "/nowhere/x", code=1)
    assert (out.startswith("Option --config has been deprecated"), err) == (True, "/nowhere/x\n")
    _, err = cluster(broker, "cluster-id", "--config", "x", "--command-config", "y", code=1)
    assert err == "--config and --command-config cannot be specified together.\n"


def test_fenced_brokers_are_not_asked_of_controllers() -> None:
    done = invoke("kafka-cluster", "list-endpoints", "-C", NOWHERE, "--include-fenced-brokers", code=1)
    assert done.stderr == "The option --include-fenced-brokers is only supported with --bootstrap-server option\n"


def test_a_dead_broker_fails(in_a_hurry: Path) -> None:
    done = invoke("kafka-cluster", "cluster-id", "-b", NOWHERE, "-c", in_a_hurry, code=1)
    assert "127.0.0.1:1 cannot be reached" in done.stderr
    done = invoke("kafka-groups", "--list", "--bootstrap-server", NOWHERE, "--command-config", in_a_hurry, code=1)
    assert done.stdout.startswith("Error while executing groups command : ")


# --- kafka-groups


@pytest.fixture(scope="module")
def with_groups(broker: Broker) -> Broker:
    reset = Command("groups", "reset", code=0)
    for group in ("billing", "a-group-with-a-rather-long-name"):
        reset(broker, group, "--topic", "orders", "--to-earliest", "--yes")
    return broker


def groups(broker: Broker, *filters: str) -> list[str]:
    header, *rows = run(broker, "kafka-groups", "--list", *filters, code=0).stdout.splitlines()
    assert header.split() == ["GROUP", "TYPE", "PROTOCOL"]
    return [row.split()[0] for row in rows]


BOTH = ["a-group-with-a-rather-long-name", "billing"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((), BOTH),
        (("--consumer",), BOTH),
        (("--group-type", "classic"), BOTH),
        (("--group-type", "CLASSIC", "--protocol", "consumer"), []),
        (("--group-type", "consumer"), []),
        (("--protocol", ""), BOTH),
        (("--protocol", "consumer"), []),
        (("--share",), []),
        (("--streams",), []),
    ],
)
def test_groups_are_filtered(with_groups: Broker, filters: tuple[str, ...], expected: list[str]) -> None:
    assert sorted(groups(with_groups, *filters)) == expected


def test_columns_are_as_wide_as_the_longest_cell(with_groups: Broker) -> None:
    lines = run(with_groups, "kafka-groups", "--list", code=0).stdout.splitlines()
    width = len("a-group-with-a-rather-long-name")
    assert {len(line) for line in lines[1:]} == {3 * (width + 1)}
    assert lines[0] == f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Command must include exactly one action: --list."),
        (("--list", "--group-type", "nonsense"), "--group-type must be a valid group type."),
        (("--list", "--consumer", "--share"), 'Option "[consumer]" can\'t be used with option "[share]"'),
        (("--list", "--consumer", "--protocol", "x"), 'Option "[consumer]" can\'t be used with option "[protocol]"'),
        (
            ("--list", "--streams", "--group-type", "share"),
            'Option "[streams]" can\'t be used with option "[group-type]"',
        ),
        (("--list", "--nonsense"), "nonsense is not a recognized option"),
        (("--list", "--command-config", "/nowhere/x"), "/nowhere/x"),
    ],
)
def test_wrong_usage_of_kafka_groups(broker: Broker, arguments: tuple[str, ...], message: str) -> None:
    done = run(broker, "kafka-groups", *arguments, code=1)
    assert done.stderr.splitlines()[0] == message


def test_kafka_groups_needs_a_server() -> None:
    assert invoke("kafka-groups", "--list", code=1).stderr.startswith("Missing required option(s) [bootstrap-server]\n")


# --- kafka-client-metrics


def test_a_subscription_is_made_shown_changed_and_deleted(broker: Broker) -> None:
    def metrics(*arguments: str) -> str:
        return run(broker, "kafka-client-metrics", *arguments, code=0).stdout

    alter = ("--alter", "--name", "watched")
    made = metrics(*alter, "--interval", "1000", "--metrics", "org.apache", "--match", "client_id=a")
    assert made == "Altered client metrics config for watched.\n"
    assert metrics("--list") == "watched\n"
    lines = metrics("--describe").splitlines()
    assert lines[0] == "Client metrics configs for watched are:"
    assert sorted(lines[1:]) == ["  interval.ms=1000", "  match=client_id=a", "  metrics=org.apache"]
    metrics(*alter, "--interval", "")
    assert "  interval.ms=300000" in metrics("--describe", "--name", "watched").splitlines()
    assert metrics("--delete", "--name", "watched") == "Deleted client metrics config for watched.\n"
    assert metrics("--list") == ""
    missing = "The client metric resource watched doesn't exist and doesn't have dynamic config.\n"
    assert metrics("--describe", "--name", "watched") == missing


def test_a_name_is_generated(broker: Broker) -> None:
    done = run(broker, "kafka-client-metrics", "--alter", "--generate-name", "--interval", "5000", code=0)
    found = re.fullmatch(r"Altered client metrics config for ([\w-]{22})\.\n", done.stdout)
    assert found is not None
    run(broker, "kafka-client-metrics", "--delete", f"--name={found[1]}", code=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Command must include exactly one action: --alter, --delete, --describe or --list."),
        (("--list", "--describe"), "Command must include exactly one action: --alter, --delete, --describe or --list."),
        (("--alter",), "One of --name or --generate-name must be specified with --alter."),
        (
            ("--alter", "--name", "x", "--generate-name"),
            "One of --name or --generate-name must be specified with --alter.",
        ),
        (
            ("--alter", "--name", "x", "--interval", "abc"),
            "Invalid interval value. Enter an integer, or leave empty to reset.",
        ),
        (("--delete",), "A client metrics resource name must be specified with --delete."),
        (("--list", "--name", "x"), 'Option "[list]" can\'t be used with option "[name]"'),
        (("--describe", "--interval", "3"), 'Option "[describe]" can\'t be used with option "[interval]"'),
    ],
)
def test_wrong_usage_of_kafka_client_metrics(broker: Broker, arguments: tuple[str, ...], message: str) -> None:
    done = run(broker, "kafka-client-metrics", *arguments, code=1)
    assert done.stderr.splitlines()[0] == message


def test_a_refused_subscription_is_reported_on_standard_output(broker: Broker) -> None:
    done = run(broker, "kafka-client-metrics", "--alter", "--name", "x", "--match", "nonsense", code=1)
    assert done.stdout == "Error while executing client metrics command : Illegal client matching pattern: nonsense\n"
    assert invoke("kafka-client-metrics", "--list", code=1).stderr == "--bootstrap-server must be specified.\n"
