"""`barnabas plan`, `apply` and `export` against a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.declared.difference import difference
from barnabas.declared.document import read_document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Done, invoke

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
WHOLE = """\
topics:
  orders:
    partitions: 3
    replicationFactor: 1
    configs: {retention.ms: 1000, cleanup.policy: [compact, delete]}
  fresh: {partitions: 2}
acls:
  - {principal: User:alice, operations: [READ, DESCRIBE], resource: topic:orders, description: she reads}
  - {principal: User:eve, operation: ALL, resource: topic:or, pattern: PREFIXED, permission: DENY, host: 10.0.0.1}
quotas:
  - {entity: {user: alice, client-id: <default>}, quotas: {producer_byte_rate: 1048576, request_percentage: 12.5}}
users:
  alice: {SCRAM-SHA-512: {iterations: 8192, password: {env: ALICE}}, SCRAM-SHA-256: {password: {file: secret}}}
brokers:
  <default>: {log.cleaner.threads: 2}
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"orders": 1, "stock": 1}, config=WITH_ACLS) as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    """A node for what changes nothing, or topics of its own."""
    with Broker({"shared": 2}, config=WITH_ACLS) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALICE", "wonderland")
    (tmp_path / "secret").write_text("looking-glass\n")
    (tmp_path / "cluster.yaml").write_text(WHOLE)
    return tmp_path / "cluster.yaml"


run = Command()


def rows(done: Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.json
    return found


def plan(broker: Broker, text: str, *options: str) -> Done:
    return run(broker, "plan", "-f", "-", *options, stdin=text)


def apply(broker: Broker, text: str, *options: str) -> Done:
    return run(broker, "apply", "-f", "-", *options, stdin=text)


def test_a_plan_is_applied_once_and_then_there_is_nothing_left_to_do(broker: Broker, file: Path) -> None:
    planned = run(broker, "plan", "-f", file, "-o", "json")
    assert planned.exit_code == 2, planned.output
    values = {(row["kind"], row["name"], row["field"]): (row["before"], row["after"]) for row in rows(planned)}
    assert values == {
        ("topic", "fresh", "partitions"): (None, 2),
        ("topic", "orders", "partitions"): (1, 3),
        ("topic", "orders", "retention.ms"): (None, "1000"),
        ("topic", "orders", "cleanup.policy"): (None, "compact,delete"),
        ("broker", "<default>", "log.cleaner.threads"): (None, "2"),
        ("quota", "user alice, client-id <default>", "producer_byte_rate"): (None, 1048576),
        ("quota", "user alice, client-id <default>", "request_percentage"): (None, 12.5),
        ("user", "alice", "SCRAM-SHA-512 iterations"): (None, 8192),
        ("user", "alice", "SCRAM-SHA-256 iterations"): (None, 4096),
        ("acl", "ALLOW User:alice to READ topic:orders", None): (None, None),
        ("acl", "ALLOW User:alice to DESCRIBE topic:orders", None): (None, None),
        ("acl", "DENY User:eve from 10.0.0.1 to ALL topic:or (PREFIXED)", None): (None, None),
    }
    applied = run(broker, "apply", "-f", file, "--yes", "-o", "json")
    assert applied.exit_code == 0, applied.output
    assert {row["result"] for row in rows(applied)} == {"done"}
    assert f"the cluster matches {file}" in applied.stderr
    assert run(broker, "plan", "-f", file).exit_code == 0
    again = run(broker, "apply", "-f", file, "--yes", "-o", "json")
    assert (again.exit_code, again.stdout) == (0, "[]\n")
    exported = run(broker, "export")
    assert exported.exit_code == 0, exported.output
    assert "wonderland" not in exported.output
    drift = plan(broker, exported.stdout, "--delete")
    assert (drift.exit_code, drift.stdout) == (0, "")


def test_nothing_is_done_before_someone_says_yes(shared: Broker) -> None:
    text = "topics: {asked: }"
    refused = apply(shared, text)
    assert refused.exit_code == 1
    assert "Apply these changes (1 to create)?" in refused.stderr
    dry = apply(shared, text, "--dry-run")
    assert (dry.exit_code, dry.stdout) == (0, "")
    assert "dry run, nothing was changed: 1 to create" in dry.stderr
    assert plan(shared, text).exit_code == 2


def test_a_dry_run_says_what_brokers_would_refuse(shared: Broker) -> None:
    tiered = "configs: {remote.storage.enable: true}"
    dry = apply(shared, f"topics: {{dry: {{{tiered}}}, shared: {{{tiered}}}}}", "--dry-run")
    assert dry.exit_code == 1
    assert "create topic dry: remote.storage.enable (none) -> true: INVALID_CONFIG: " in dry.stderr
    assert "alter topic shared: remote.storage.enable (none) -> true: INVALID_CONFIG: Tiered Storage" in dry.stderr


def test_it_stops_at_the_first_failure_and_says_what_was_done_and_what_not(shared: Broker) -> None:
    text = """
topics: {done: , failed: {configs: {remote.storage.enable: true}}, shared: {partitions: 3}}
acls: [{principal: User:late, operation: READ, resource: topic:done}]
"""
    result = apply(shared, text, "--yes", "-o", "json")
    assert result.exit_code == 1
    assert [(row["name"], row["result"], row["error"]) for row in rows(result)] == [
        ("done", "done", None),
        ("failed", "failed", "INVALID_CONFIG"),
        ("shared", "not tried", None),
        ("ALLOW User:late to READ topic:done", "not tried", None),
    ]
    assert "1 done, 1 failed, 2 not tried" in result.stderr
    rest = apply(shared, text.replace("true", "false"), "--yes", "-o", "json")
    assert [row["name"] for row in rows(rest)] == ["failed", "shared", "ALLOW User:late to READ topic:done"]


def test_what_no_broker_would_accept_is_an_error_and_not_drift(shared: Broker, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("""\
topics:
  shared:
    configs:
      retention.msec: 1
      segment.bytes: many
      no.such.thing: null
  new: {configs: {min.compaction.lag.ms: 9, max.compaction.lag.ms: 3}}
  a.b: {}
  a_b: {}
quotas:
  - {entity: {user: u}, quotas: {producer_rate: 1, consumer_byte_rate: 0.5, request_percentage: 0}}
  - {entity: {ip: 10.0.0.1}, quotas: {producer_byte_rate: 1}}
users:
  u: {SCRAM-SHA-256: {iterations: 20000, password: {env: ALICE}}}
brokers:
  <default>: {log.cleaner.thread: 2, log.dirs: x, ssl.client.auth: none}
  1: {log.cleaner.threads: -1}
""")
    for command in (("plan",), ("apply", "--yes"), ("apply", "--dry-run")):
        result = run(shared, *command, "-f", path, code=1)
        assert result.stderr.partition("Error: ")[2].splitlines() == [
            f"{path}:{line}"
            for line in (
                "4:7: topic shared: unknown config retention.msec; did you mean retention.ms?",
                "5:22: topic shared: Invalid value many for configuration segment.bytes: Not a number of type INT",
                "6:7: topic shared: unknown config no.such.thing",
                "7:18: topic new: min.compaction.lag.ms (9) is greater than max.compaction.lag.ms (3)",
                "8:3: topic a.b: the name collides with topic a_b: Kafka does not tell . and _ apart",
                "9:3: topic a_b: the name collides with topic a.b: Kafka does not tell . and _ apart",
                "11:34: quota: user u: unknown quota producer_rate; did you mean producer_byte_rate?",
                "11:72: quota: user u: consumer_byte_rate cannot be a fractional value.",
                "11:97: quota: user u: Quota request_percentage must be greater than 0",
                "12:39: quota: ip 10.0.0.1: unknown quota producer_byte_rate: expected connection_creation_rate",
                "14:35: user u: SCRAM-SHA-256: iterations: expected a whole number of at most 16384, found 20000",
                "16:15: broker <default>: unknown config log.cleaner.thread; did you mean log.cleaner.threads?",
                "16:48: broker <default>: Cannot update these configs dynamically: [log.dirs]",
                "16:68: broker <default>: Cannot update these configs at default cluster level, broker id must be"
                " specified: [ssl.client.auth]",
                "17:28: broker 1: Invalid value -1 for configuration log.cleaner.threads: Value must be at least 0",
            )
        ]
    assert "new" not in run(shared, "export", "--section", "topics").stdout


def test_a_setting_that_the_cluster_knows_and_barnabas_does_not_is_accepted() -> None:
    text = """\
topics: {t: {configs: {segment.bytes: 100, newer.setting: x}}, u: {configs: {newer.setting: y, odd: z}}}
quotas: [{entity: {user: u}, quotas: {newer_rate: 1, older: 1}}]
users: {u: {SCRAM-SHA-256: {iterations: 20000}}}
"""
    present = {"segment.bytes": "100", "newer.setting": "x"}
    observed = Observed(
        topics={"t": ObservedTopic("t", {0: (1,)}, configs=present), "u": ObservedTopic("u", {0: (1,)})},
        quotas={(("user", "u"),): {"newer_rate": 1.0}},
        users={("u", "SCRAM-SHA-256"): 20000},
        racks={1: None},
        setting_names={"topics": frozenset({"newer.setting"})},
    )
    found = difference(read_document(text, "c"), observed)
    assert [str(each).partition(" ")[2] for each in found.problems] == [
        "topic u: unknown config odd",
        "quota: user u: unknown quota older: expected producer_byte_rate, consumer_byte_rate, request_percentage,"
        " controller_mutation_rate",
    ]


def test_an_empty_file_is_no_drift_and_no_success(shared: Broker) -> None:
    for command in (plan, apply):
        result = command(shared, "")
        assert result.exit_code == 1
        assert "Error: standard input:1:1: the file declares nothing: expected topics, " in result.stderr


def test_adding_partitions_warns_that_keys_move(shared: Broker) -> None:
    assert (
        "records with the same key may go to another partition"
        in plan(shared, "topics: {shared: {partitions: 9}}").stderr
    )


def test_partitions_cannot_be_taken_away(shared: Broker) -> None:
    result = plan(shared, "topics: {shared: {partitions: 1}}")
    assert result.exit_code == 1
    assert "Error: standard input:1:10: topic shared: 1 partitions are declared, and it has " in result.stderr
    assert apply(shared, "topics: {shared: {partitions: 1}}", "--yes").exit_code == 1


def test_what_is_not_declared_stays_unless_told(broker: Broker) -> None:
    text = "topics: {orders: {configs: {}}}"
    quiet = plan(broker, text)
    assert quiet.exit_code == 0
    assert "resources that are not declared are ignored (topics 1); --delete would delete them" in quiet.stderr
    drift = plan(broker, text, "--delete", "-o", "json")
    assert drift.exit_code == 2
    assert [(row["action"], row["name"]) for row in rows(drift)] == [("delete", "stock")]
    assert apply(broker, text, "--prune", "--yes").exit_code == 0
    assert "stock" not in run(broker, "export", "--section", "topics").stdout


def test_all_files_count_so_that_nothing_of_the_first_is_deleted(broker: Broker, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("topics: {orders: }")
    two.write_text("topics: {stock: , fresh: }")
    applied = run(broker, "apply", "-f", one, "-f", two, "--delete", "--yes", "-o", "json", code=0)
    assert [(row["action"], row["name"]) for row in rows(applied)] == [("create", "fresh")]
    assert run(broker, "plan", "-f", tmp_path, "--delete", code=0).stderr == "no drift: the cluster matches 2 files\n"
    two.write_text("topics: {orders: }")
    refused = run(broker, "apply", "-f", one, "-f", two, "--delete", "--yes", code=1)
    assert f"{two}:1:10: topic orders: already declared in {one}:1:10" in refused.stderr


def test_what_is_declared_absent_is_deleted_and_nothing_else(broker: Broker) -> None:
    text = "topics: {stock: {state: absent}}"
    assert plan(broker, text).exit_code == 2
    refused = apply(broker, text)
    assert refused.exit_code == 1
    assert "Apply these changes (1 to delete)? This cannot be confirmed" in refused.stderr
    done = apply(broker, text, "--yes", "-o", "json")
    assert [(row["action"], row["name"], row["result"]) for row in rows(done)] == [("delete", "stock", "done")]
    assert plan(broker, text).exit_code == 0
    assert "orders" in run(broker, "export", "--section", "topics").stdout


def test_only_what_a_file_manages_is_deleted(broker: Broker) -> None:
    created = """
topics: {team-a: , team-b: {configs: {retention.ms: 1000}}, other: {configs: {retention.ms: 1000}}}
acls:
  - {principal: User:team, operation: READ, resource: topic:orders}
  - {principal: User:x, operation: READ, resource: topic:team-a}
  - {principal: User:x, operation: READ, resource: topic:orders}
quotas:
  - {entity: {user: team, client-id: c}, quotas: {producer_byte_rate: 1000}}
  - {entity: {user: x}, quotas: {producer_byte_rate: 1000}}
"""
    assert apply(broker, created, "--yes").exit_code == 0
    text = """
topics: {team-b: {configs: {}}, other: {configs: {}}}
acls: []
manages:
  topics: [team-*]
  acls: [{resource: topic:team-*}, {principal: User:team}]
  quotas: [{user: team}]
"""
    quiet = plan(broker, text)
    assert quiet.exit_code == 0
    assert "not declared are ignored (acls 2, quotas 1, topics 2); --delete would delete them" in quiet.stderr
    drift = plan(broker, text, "--delete", "-o", "json")
    expected = [
        ("alter", "team-b", "retention.ms"),
        ("alter", "user team, client-id c", "producer_byte_rate"),
        ("delete", "ALLOW User:x to READ topic:team-a", None),
        ("delete", "ALLOW User:team to READ topic:orders", None),
        ("delete", "team-a", "partitions"),
    ]
    assert sorted((row["action"], row["name"], row["field"]) for row in rows(drift)) == sorted(expected, key=str)
    assert apply(broker, text, "--delete", "--yes").exit_code == 0
    left = run(broker, "export").stdout
    assert "other" in left and "stock" in left and "User:x" in left and "team-a" not in left


def test_everything_is_taken_away_again(broker: Broker, file: Path) -> None:
    assert run(broker, "apply", "-f", file, "--yes").exit_code == 0
    nothing = "topics: {}\nacls: []\nquotas: []\nusers: {}\nbrokers: {<default>: {log.cleaner.threads: null}}"
    result = apply(broker, nothing, "--delete", "--yes")
    assert result.exit_code == 0, result.output
    sections = run(broker, "export").stdout
    for empty in ("topics: {}", "acls: []", "quotas: []", "users: {}"):
        assert empty in sections
    assert "log.cleaner.threads" not in sections


def test_a_password_that_is_not_there_stops_it_before_anything_is_done(shared: Broker, tmp_path: Path) -> None:
    text = "topics: {early: }\nusers: {bob: {SCRAM-SHA-512: {password: {env: NOT_SET_ANYWHERE}}}}"
    result = apply(shared, text, "--yes")
    assert result.exit_code == 1
    assert "Error: the password of user bob: the environment variable NOT_SET_ANYWHERE is not set\n" in result.stderr
    path = tmp_path / "c.yaml"
    path.write_text("users: {bob: {SCRAM-SHA-512: {password: {file: nothing}}}}")
    result = run(shared, "apply", "-f", path, "--yes")
    assert f"the password of user bob: {tmp_path / 'nothing'}: No such file or directory" in result.stderr
    assert "early" not in run(shared, "export", "--section", "topics").stdout


def test_malformed_yaml_is_named_by_line(shared: Broker, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("topics:\n  a: {partitions: 3\n  b: {}\n")
    for command in (["plan"], ["apply", "--yes"]):
        result = run(shared, *command, "-f", path)
        assert result.exit_code == 1
        assert f"Error: {path}:3:" in result.stderr
        assert "Traceback" not in result.output


def test_commands_that_are_not_understood_are_no_drift(shared: Broker) -> None:
    for arguments in (["plan"], ["plan", "-f", "no-such-file"], ["plan", "--odd"]):
        assert run(shared, *arguments).exit_code == 1
    assert run(shared, "apply").exit_code == 2


def test_acls_of_a_cluster_without_an_authorizer_are_a_problem_and_not_exported() -> None:
    with Broker() as broker:
        text = "acls: [{principal: User:a, operation: READ, resource: topic:x}]"
        result = plan(broker, text)
        assert result.exit_code == 1
        assert "standard input:1:8: ACLs are declared, and the cluster has no authorizer" in result.stderr
        exported = run(broker, "export")
    assert exported.exit_code == 0
    assert "acls" not in exported.stdout
    assert "there are no ACLs" in exported.stderr


def test_what_may_not_be_seen_is_not_taken_to_be_absent() -> None:
    with guarded_broker() as broker:
        result = plan(broker, "topics: {secret: {partitions: 1}}")
        assert result.exit_code == 1
        assert "TOPIC_AUTHORIZATION_FAILED: topic secret: " in result.stderr
        result = plan(broker, "quotas: []")
        assert "CLUSTER_AUTHORIZATION_FAILED" in result.stderr


def test_an_export_goes_to_a_file_and_keeps_descriptions(broker: Broker, file: Path) -> None:
    assert run(broker, "apply", "-f", file, "--yes").exit_code == 0
    written = file.parent / "exported.yaml"
    result = run(broker, "export", "-f", written, "--section", "acls", "--descriptions", file)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "description: she reads" in written.read_text()
    assert run(broker, "export", "-f", file.parent / "no" / "where").exit_code == 1


def test_controllers_do_not_know_enough(shared: Broker) -> None:
    for command in (["plan", "-f", "-"], ["export"]):
        controller = ("--bootstrap-controller", shared.listeners["CONTROLLER"])
        result = invoke(*command, *controller, stdin="topics: {}", code=1)
        assert "use --bootstrap-server" in result.stderr
