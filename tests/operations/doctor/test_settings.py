"""Every check of a server.properties: a healthy file is silent, and each broken example has its finding."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.config import properties
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.operations.doctor.findings import Finding, advised, findings
from barnabas.operations.doctor.settings import CHECKS, SettingsFile, read_settings

HEALTHY = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:0",
    "log.dirs": "/var/lib/no-such-barnabas/a,/var/lib/no-such-barnabas/b",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def found_in(changes: Mapping[str, str | None], *, mode: int = 0o600, more: str = "") -> list[Finding]:
    given = {key: value for key, value in {**HEALTHY, **changes}.items() if value is not None}
    return list(findings(CHECKS, SettingsFile(Path("s.properties"), properties.dumps(given) + more, mode)))


def test_a_healthy_file_is_silent() -> None:
    assert found_in({}) == []


def with_protocol(protocol: str) -> dict[str, str]:
    return {
        "listeners": f"{protocol}://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
        "security.inter.broker.protocol": protocol,
    }


SECURED = with_protocol("SSL")
LOGGING_IN = with_protocol("SASL_PLAINTEXT") | {"sasl.mechanism.inter.broker.protocol": "PLAIN"}
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
TOKENS = with_protocol("SASL_PLAINTEXT") | {
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "file:///no/such/keys.json",
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
    "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
        f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
    ),
}
EVERYWHERE = "PLAINTEXT://0.0.0.0:0,CONTROLLER://127.0.0.1:0"
BROKEN: list[tuple[str, str, Mapping[str, str | None], str, str]] = [
    ("error", "settings-valid", {"num.partitions": "many"}, "num.partitions", "correct num.partitions"),
    ("error", "settings-valid", {"num.partitions": "0"}, "num.partitions", "correct num.partitions"),
    (
        "error",
        "secured-listeners",
        {**SECURED, "ssl.keystore.type": "PEM", "ssl.keystore.location": "/no/such/store.pem"},
        "/no/such/store.pem",
        "",
    ),
    ("error", "secured-listeners", SECURED, "ssl.keystore", ""),
    ("error", "secured-listeners", TOKENS, "cannot be accessed due to restrictions", "set KAFKA_OPTS="),
    (
        "error",
        "secured-listeners",
        {**TOKENS, "sasl.oauthbearer.jwks.endpoint.url": None},
        "to be configured so that JWT signatures can be verified",
        "correct sasl.oauthbearer.jwks.endpoint.url",
    ),
    (
        "error",
        "audit-log",
        {"barnabas.audit.log.path": "/no/such/audit.log"},
        "there is no directory /no/such",
        "correct barnabas.audit.log.path",
    ),
    ("error", "audit-log", {"barnabas.audit.log.path": "/"}, "it is a directory", "correct barnabas.audit.log.path"),
    (
        "error",
        "secured-listeners",
        {**LOGGING_IN, "sasl.enabled.mechanisms": "PLAIN"},
        "sasl.jaas.config",
        "",
    ),
    ("error", "settings-valid", {"process.roles": None}, "process.roles", "correct"),
    ("error", "settings-valid", {"listeners": "nonsense"}, "listener", "correct listeners"),
    (
        "error",
        "settings-valid",
        {"listeners": EVERYWHERE, "advertised.listeners": "PLAINTEXT://0.0.0.0:0"},
        "0.0.0.0",
        "",
    ),
    ("error", "settings-valid", {"advertised.listeners": "OTHER://127.0.0.1:0"}, "OTHER", "correct"),
    ("error", "settings-valid", {"controller.quorum.voters": "2@127.0.0.1:0"}, "node id 1 must be included", "correct"),
    (
        "error",
        "settings-supported",
        {"authorizer.class.name": "com.Other"},
        "com.Other is not supported",
        STANDARD_AUTHORIZER,
    ),
    ("error", "settings-supported", {"create.topic.policy.class.name": "a.B"}, "no Java classes", "Remove"),
    (
        "warning",
        "settings-ignored",
        {"super.users": "User:a"},
        "no effect without authorizer.class.name",
        "remove super.users",
    ),
    ("warning", "settings-known", {"num.partition": "3"}, "did you mean num.partitions?", "write num.partitions"),
    ("warning", "settings-known", {"zookeeper.connect": "a:1"}, "was removed from Kafka", "no ZooKeeper"),
    ("warning", "settings-deprecated", {"log.cleaner.enable": "false"}, "deprecated", "remove log.cleaner.enable"),
    (
        "warning",
        "quorum-voters",
        {"controller.quorum.voters": "1@127.0.0.1:7", "controller.quorum.bootstrap.servers": None},
        "has port 7 for node 1",
        "set controller.quorum.voters=1@127.0.0.1:0",
    ),
    (
        "warning",
        "quorum-voters",
        {"controller.quorum.bootstrap.servers": "other:7"},
        "does not name",
        "add 127.0.0.1:0",
    ),
    (
        "warning",
        "advertised-listeners",
        {"listeners": EVERYWHERE, "advertised.listeners": "PLAINTEXT://localhost:0"},
        "advertised as localhost",
        "NAME-OF-THIS-MACHINE",
    ),
    (
        "warning",
        "advertised-listeners",
        {"advertised.listeners": "PLAINTEXT://no..such.host:0"},
        "does not know that host",
        "correct the name",
    ),
    (
        "warning",
        "advertised-listeners",
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,TWO://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TWO:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
        },
        "TWO is not in advertised.listeners",
        "add TWO://HOST:0",
    ),
    (
        "note",
        "advertised-listeners",
        {"listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0"},
        "clients are told the name of this machine",
        "set advertised.listeners",
    ),
    ("error", "log-dirs", {"log.dirs": "/var/lib/x,/var/lib/../lib/x"}, "are the same directory", "name it once"),
    ("error", "log-dirs", {"log.dirs": "/var/lib/x,/var/lib/x/y"}, "/var/lib/x/y is inside /var/lib/x", "beside"),
    ("warning", "log-dirs", {"log.dirs": "/tmp/kafka-logs"}, "under /tmp", "move it"),
    ("note", "log-dirs", {"log.dirs": "here"}, "here is relative", "write /"),
    ("warning", "replication-settings", {"offsets.topic.replication.factor": "3"}, "1 broker", "replication.factor=1"),
    (
        "error",
        "replication-settings",
        {"min.insync.replicas": "2"},
        "exceeds default.replication.factor=1",
        "set min.insync",
    ),
    (
        "error",
        "replication-settings",
        {"transaction.state.log.min.isr": "2"},
        "exceeds transaction.state.log.replication.factor=1",
        "set transaction.state.log.min.isr=1",
    ),
    ("warning", "unclean-elections", {"unclean.leader.election.enable": "true"}, "records are lost", "=false"),
    ("warning", "retention", {"log.retention.ms": "1"}, "deletes records after 1ms", "for one topic"),
    ("warning", "retention", {"log.retention.bytes": "1000"}, "smaller than a segment", "raise"),
    ("warning", "retention", {"offsets.retention.minutes": "5"}, "loses its offsets", "10080"),
    ("error", "message-sizes", {"message.max.bytes": "200000000"}, "socket.request.max.bytes", "set socket.request"),
    (
        "error",
        "message-sizes",
        {"message.max.bytes": "2000000", "log.segment.bytes": "1048576"},
        "fits into no segment",
        "raise log.segment.bytes",
    ),
]


@pytest.mark.parametrize(("severity", "check", "changes", "message", "remedy"), BROKEN)
def test_a_broken_file_has_its_finding(
    severity: str, check: str, changes: Mapping[str, str | None], message: str, remedy: str
) -> None:
    found = [each for each in found_in(changes) if each.check == check]
    (one,) = [each for each in found if message in each.message]
    assert one.severity.value == severity
    assert remedy in one.remedy
    assert one.subject.startswith("s.properties")


def test_every_check_has_a_broken_example() -> None:
    tested_below = {"settings-repeated", "ports", "secrets"}
    assert {each.name for each in CHECKS} == {check for _, check, *_ in BROKEN} | tested_below


def test_all_wrong_values_are_found_at_once() -> None:
    found = found_in({"num.partitions": "x", "num.io.threads": "0"})
    assert [each.check for each in found] == ["settings-valid", "settings-valid"]


def test_a_repeated_name_is_found_with_its_lines() -> None:
    (one,) = found_in({}, more="num.partitions=1\n# comment\nnum.partitions=2\n")
    assert (one.check, one.message) == (
        "settings-repeated",
        "num.partitions is set in lines 12, 14: the last one counts",
    )
    assert one.subject == "s.properties:14"


def test_a_port_in_use_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        (one,) = found_in({"listeners": listeners})
    assert (one.check, one.severity.value) == ("ports", "error")
    assert f"cannot listen on 127.0.0.1:{port} for PLAINTEXT: Address already in use" in one.message
    assert found_in({"listeners": listeners}) == []


@pytest.mark.parametrize("setting", ["barnabas.metrics.listener", "barnabas.faults.listener"])
def test_a_port_in_use_by_metrics_or_faults_is_found(setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        (one,) = found_in({setting: address})
    assert (one.check, one.severity.value) == ("ports", "error")
    assert f"cannot listen on {address} for {setting}: Address already in use" in one.message
    assert one.remedy == f"choose another port in {setting}, or empty it"
    assert found_in({setting: address}) == []


@pytest.mark.parametrize("content", [None, b"no keys"])
def test_keys_of_bearer_tokens_that_cannot_be_read_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = tmp_path / "keys.json"
    url = f"file://{path}"
    monkeypatch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
    if content is not None:
        path.write_bytes(content)
    (one,) = found_in({**TOKENS, "sasl.oauthbearer.jwks.endpoint.url": url})
    assert (one.check, one.severity.value) == ("secured-listeners", "error")
    assert str(path) in one.message


def test_a_service_of_keys_that_does_not_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}/keys"
    monkeypatch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
    (one,) = found_in({**TOKENS, "sasl.oauthbearer.jwks.endpoint.url": url})
    assert (one.check, one.severity.value) == ("secured-listeners", "error")
    assert "Could not refresh JWKS" in one.message


def test_an_audit_log_that_can_be_written_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    assert found_in({"barnabas.audit.log.path": str(path)}) == []
    assert not path.exists()


def test_a_listener_on_a_foreign_address_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    found = found_in({"listeners": f"PLAINTEXT://192.0.2.1:{port},CONTROLLER://127.0.0.1:0"})
    assert [each.check for each in found] == ["ports"]


def test_passwords_in_a_readable_file_are_found() -> None:
    secret = {"ssl.keystore.password": "s3cret"}
    assert found_in(secret) == []
    (one,) = found_in(secret, mode=0o644)
    assert (one.check, one.remedy) == ("secrets", "chmod 600 s.properties")
    assert "s3cret" not in one.message
    assert found_in({"ssl.keystore.password": "${file:a:b}", "config.providers": "file"}, mode=0o644) == []


def test_a_file_is_read_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nssl.key.password=x\n")
    path.chmod(0o640)
    assert "secrets" not in {each.check for each in findings(CHECKS, read_settings(path))}
    path.chmod(0o644)
    assert "secrets" in {each.check for each in findings(CHECKS, read_settings(path))}


def test_advice_is_split_from_what_is_wrong() -> None:
    assert advised(ValueError("x is in both a and b: remove one of them")) == (
        "x is in both a and b",
        "remove one of them",
    )
    assert advised(ValueError("it is. Use y; or z")) == ("it is", "Use y; or z")
    assert advised(ValueError("nothing to say: here")) == ("nothing to say: here", "")
