"""`barnabas plan`, `apply` and `export` against Apache Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import HOST, OLD_VERSION, VERSION, ApacheKafka, free_ports

from barnabas.client.cluster import Cluster
from barnabas.client.errors import AuthenticationError
from tests.command_line import Command, Done
from tests.interop.conftest import jars
from tests.interop.side_by_side import WITH_ACLS, ok

pytestmark = pytest.mark.interop

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
WHOLE = """\
topics:
  orders:
    partitions: 3
    replicationFactor: 1
    configs: {retention.ms: 1000, cleanup.policy: [compact, delete]}
  "007": {partitions: 2, configs: {follower.replication.throttled.replicas: "1:1,0:2"}}
  plain:
acls:
  - {principal: User:alice, operations: [READ, DESCRIBE], resource: topic:orders, description: she reads}
  - {principal: User:eve, operation: ALL, resource: topic:or, pattern: PREFIXED, permission: DENY, host: 10.0.0.1}
  - {principal: "User:*", operation: DESCRIBE, resource: cluster}
quotas:
  - {entity: {user: alice, client-id: <default>}, quotas: {producer_byte_rate: 1048576, request_percentage: 12.5}}
  - {entity: {user: <default>}, quotas: {consumer_byte_rate: 1.0e+6}}
  - {entity: {ip: 127.0.0.2}, quotas: {connection_creation_rate: 5}}
users:
  alice: {SCRAM-SHA-512: {iterations: 8192, password: {env: ALICE}}, SCRAM-SHA-256: {password: {file: secret}}}
brokers:
  <default>: {log.cleaner.threads: 2}
  1: {log.cleaner.io.buffer.load.factor: 0.8}
"""


@pytest.fixture(scope="module", params=[VERSION, OLD_VERSION])
def node(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    jars(request.param)
    ports = dict(zip(("PLAINTEXT", "CONTROLLER", "SASL_PLAINTEXT"), free_ports(3), strict=True))
    overrides = {
        **WITH_ACLS,
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    for mechanism in ("scram-sha-256", "scram-sha-512"):
        overrides[f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    kafka = ApacheKafka(overrides, version=request.param)
    kafka.address, kafka.controller = (HOST, ports["PLAINTEXT"]), f"{HOST}:{ports['CONTROLLER']}"
    with kafka:
        yield kafka


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALICE", "wonderland")
    (tmp_path / "secret").write_text("looking-glass\n")
    (tmp_path / "cluster.yaml").write_text(WHOLE)
    return tmp_path / "cluster.yaml"


run = Command()


def done(result: Done) -> Done:
    assert result.exit_code == 0, result.output
    return result


async def log_in(node: ApacheKafka, mechanism: str, password: str) -> None:
    settings = {
        "bootstrap.servers": node.properties["listeners"].rpartition("//")[2],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM_MODULE} required username="alice" password="{password}";',
    }
    async with Cluster(settings):
        pass


def test_a_file_is_planned_applied_exported_and_taken_back(node: ApacheKafka, file: Path) -> None:
    planned = run(node, "plan", "-f", file, "-o", "json")
    assert planned.exit_code == 2, planned.output
    dry = run(node, "apply", "-f", file, "--dry-run")
    assert dry.exit_code == 0, dry.output
    applied = done(run(node, "apply", "-f", file, "--yes", "-o", "json"))
    assert {row["result"] for row in json.loads(applied.stdout)} == {"done"}
    assert f"the cluster matches {file}" in applied.stderr
    assert done(run(node, "plan", "-f", file)).stdout == ""
    assert done(run(node, "apply", "-f", file, "--yes", "-o", "json")).stdout == "[]\n"

    exported = done(run(node, "export")).stdout
    for text in (exported, done(run(node, "export", "-o", "json")).stdout):
        assert done(run(node, "plan", "-f", "-", "--delete", stdin=text)).stdout == ""
        assert json.loads(done(run(node, "plan", "-f", "-", "--delete", "-o", "json", stdin=text)).stdout) == []
    described = ok(node.tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "orders"))
    assert "retention.ms=1000" in described and "cleanup.policy=compact,delete" in described
    asyncio.run(log_in(node, "SCRAM-SHA-512", "wonderland"))
    asyncio.run(log_in(node, "SCRAM-SHA-256", "looking-glass"))
    with pytest.raises(AuthenticationError):
        asyncio.run(log_in(node, "SCRAM-SHA-256", "wonderland"))

    ok(node.tool("kafka-topics", "--alter", "--topic", "plain", "--partitions", "2"))
    ok(node.tool("kafka-acls", "--remove", "--cluster", "--force"))
    assert run(node, "plan", "-f", "-", "--delete", stdin=exported).exit_code == 1  # partitions cannot be removed
    drift = run(node, "plan", "-f", file, "-o", "json")
    assert [row["name"] for row in json.loads(drift.stdout)] == ["ALLOW User:* to DESCRIBE cluster"]

    nothing = "topics: {}\nacls: []\nquotas: []\nusers: {}\nbrokers: {1: {log.cleaner.io.buffer.load.factor: null}}"
    done(run(node, "apply", "-f", "-", "--delete", "--yes", stdin=nothing))
    left = done(run(node, "export")).stdout
    for empty in ("topics: {}", "acls: []", "quotas: []", "users: {}"):
        assert empty in left


def test_what_a_broker_refuses_stops_it(node: ApacheKafka) -> None:
    text = (
        "topics: {fine: , odd: {configs: {remote.storage.enable: true}}}\n"
        "quotas: [{entity: {ip: no.such.host.invalid}, quotas: {connection_creation_rate: 1}}]"
    )
    dry = run(node, "apply", "-f", "-", "--dry-run", stdin=text)
    assert dry.exit_code == 1
    assert "create topic odd: " in dry.stderr and "alter quota ip no.such.host.invalid: " in dry.stderr
    result = run(node, "apply", "-f", "-", "--yes", "-o", "json", stdin=text)
    assert result.exit_code == 1
    found = [(row["name"], row["result"]) for row in json.loads(result.stdout)]
    assert found == [("fine", "done"), ("odd", "failed"), ("ip no.such.host.invalid", "not tried")]


REFUSED = {
    "topics: {x: {configs: {retention.ms: soon}}}": ("topics", "x", "retention.ms=soon"),
    "topics: {x: {configs: {no.such.setting: 1}}}": ("topics", "x", "no.such.setting=1"),
    "topics: {x: {configs: {segment.bytes: 0}}}": ("topics", "x", "segment.bytes=0"),
    "quotas: [{entity: {user: q}, quotas: {odd_rate: 1}}]": ("users", "q", "odd_rate=1"),
    "quotas: [{entity: {user: q}, quotas: {producer_byte_rate: 0.5}}]": ("users", "q", "producer_byte_rate=0.5"),
    "brokers: {1: {log.dirs: x}}": ("brokers", "1", "log.dirs=x"),
    "brokers: {1: {log.cleaner.threads: -1}}": ("brokers", "1", "log.cleaner.threads=-1"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_plan_calls_an_error_kafka_refuses(node: ApacheKafka, text: str) -> None:
    done(run(node, "apply", "-f", "-", "--yes", stdin="topics: {x: }"))
    planned = run(node, "plan", "-f", "-", stdin=text)
    assert planned.exit_code == 1, planned.output
    assert "standard input:1:" in planned.stderr
    kind, name, setting = REFUSED[text]
    told = node.tool("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", setting)
    assert told.returncode != 0 or "Error" in told.stdout + told.stderr, told


def test_a_plan_shows_only_real_changes_and_where_a_value_comes_from(node: ApacheKafka) -> None:
    text = "topics: {real: {partitions: 1, configs: {retention.ms: 86400000, cleanup.policy: [delete]}}}"
    done(run(node, "apply", "-f", "-", "--yes", stdin=text))
    same = text.replace("86400000", "'+86400000'").replace("[delete]", "' delete '")
    assert done(run(node, "plan", "-f", "-", stdin=same)).stdout == "", "written in another way, but equal"
    changed = run(node, "plan", "-f", "-", "-o", "json", stdin=text.replace("86400000", "86400001"))
    (row,) = json.loads(changed.stdout)
    assert (row["name"], row["field"], row["before"], row["after"]) == ("real", "retention.ms", "86400000", "86400001")
    (shown,) = run.rows(node, "configs", "describe", "real", "--name", "retention.ms")
    assert (shown["value"], shown["source"], shown["default"]) == ("86400000", "DYNAMIC_TOPIC_CONFIG", "604800000")
    done(run(node, "configs", "set", "brokers", "log.retention.ms=500000000", "--yes"))
    done(run(node, "apply", "-f", "-", "--yes", stdin="topics: {real: {configs: {retention.ms: null}}}"))
    (shown,) = run.rows(node, "configs", "describe", "real", "--name", "retention.ms")
    assert (shown["value"], shown["source"]) == ("500000000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert shown["default"] == "604800000", "log.retention.hours=168, in milliseconds"
    done(run(node, "configs", "unset", "brokers", "log.retention.ms", "--yes"))


def test_files_of_a_folder_manage_only_what_they_say(node: ApacheKafka, tmp_path: Path) -> None:
    done(run(node, "apply", "-f", "-", "--yes", stdin="topics: {team-a: , team-b: , alone: }"))
    (tmp_path / "one.yaml").write_text("topics: {team-a: }")
    (tmp_path / "two.yaml").write_text("manages: {topics: [team-*]}")
    planned = run(node, "plan", "-f", tmp_path, "--delete", "-o", "json")
    assert [(row["action"], row["name"]) for row in json.loads(planned.stdout)] == [("delete", "team-b")]
    done(run(node, "apply", "-f", tmp_path, "--delete", "--yes"))
    assert "alone" in ok(node.tool("kafka-topics", "--list"))


def test_records_that_a_change_deletes_are_counted(node: ApacheKafka) -> None:
    done(run(node, "apply", "-f", "-", "--yes", stdin="topics: {old: {partitions: 1, configs: {retention.ms: -1}}}"))
    lines = "".join(f'{{"value": "{n}", "timestamp": {1000 + n}}}\n' for n in range(5))
    done(run(node, "records", "produce", "old", "--format", "json", stdin=lines))
    refused = run(node, "configs", "set", "old", "retention.ms=60000")
    assert refused.exit_code == 1
    assert "warning: topic old: records older than 1m are deleted (up to 5 of 5 records, about " in refused.stderr


def test_another_replication_factor_is_a_reassignment() -> None:
    jars(VERSION)
    with ApacheKafka() as first:
        settings = {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.bootstrap.servers": first.controller,
        }
        with ApacheKafka(settings, cluster_id=first.cluster_id):
            one = "topics: {moved: {partitions: 2, replicationFactor: 1}}"
            done(run(first, "apply", "-f", "-", "--yes", stdin=one))
            two = "topics: {moved: {partitions: 4, replicationFactor: 2}}"
            planned = json.loads(run(first, "plan", "-f", "-", "-o", "json", stdin=two).stdout)
            assert [(row["field"], row["before"], row["after"]) for row in planned] == [
                ("partitions", 2, 4),
                ("replicationFactor", 1, 2),
            ]
            applied = done(run(first, "apply", "-f", "-", "--yes", stdin=two))
            assert "the cluster matches standard input" in applied.stderr
            described = ok(first.tool("kafka-topics", "--describe", "--topic", "moved"))
            assert described.count("Replicas: 1,2") + described.count("Replicas: 2,1") == 4
            done(run(first, "apply", "-f", "-", "--yes", stdin="topics: {moved: {replicationFactor: 1}}"))
            done(run(first, "plan", "-f", "-", stdin="topics: {moved: {replicationFactor: 1}}"))
            too_many = run(first, "plan", "-f", "-", stdin="topics: {moved: {replicationFactor: 3}}")
            assert "replication factor 3 needs 3 brokers, and there are 2" in too_many.stderr
