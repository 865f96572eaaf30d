"""`barnabas users` against a node."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.metadata.scram import ScramUser
from barnabas.offline.metadata import load
from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Done, environment, program


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def users(broker: Broker, *arguments: object, code: int = 0, stdin: str = "") -> Done:
    done = Command("users")(broker, *arguments, code=code, stdin=stdin)
    assert "hunter2" not in done.output
    return done


def rows(broker: Broker, *arguments: object, code: int = 0) -> Any:
    return users(broker, *arguments, "-o", "json", code=code).json


def create(broker: Broker, name: str, *args: str) -> Done:
    return users(broker, "set", name, "--password-stdin", *args, stdin="hunter2\n")


def test_a_password_comes_from_the_standard_input_and_shows_nowhere(broker: Broker) -> None:
    assert "create the SCRAM-SHA-512 credential of user ann" in create(broker, "ann").stderr
    create(broker, "ann", "--mechanism", "SCRAM-SHA-256", "--iterations", "8192")
    assert rows(broker, "describe", "ann") == [
        {"user": "ann", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "ann", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    assert "ann" in {row["user"] for row in rows(broker, "list")}


def test_another_password_takes_the_place_of_the_old_one(broker: Broker) -> None:
    create(broker, "changed")
    key = ScramUser(2, "changed")
    before = load(broker.data_dir / "__cluster_metadata-0").image.scram[key]
    assert "replace the SCRAM-SHA-512 credential" in create(broker, "changed").stderr
    after = load(broker.data_dir / "__cluster_metadata-0").image.scram[key]
    assert before.salt != after.salt
    assert before.stored_key != after.stored_key


def test_a_dry_run_creates_nobody(broker: Broker) -> None:
    assert "would create" in create(broker, "tried", "--dry-run").stderr
    assert "RESOURCE_NOT_FOUND" in users(broker, "describe", "tried", code=1).stderr


def test_where_nobody_can_type_a_password_the_option_is_named(broker: Broker) -> None:
    assert "--password-stdin" in users(broker, "set", "ann", code=1).stderr
    assert "empty" in users(broker, "set", "ann", "--password-stdin", code=1, stdin="\n").stderr


def test_a_password_is_asked_for_twice_on_a_terminal_and_not_echoed(broker: Broker) -> None:
    ours, theirs = pty.openpty()
    command = program("users", "set", "typed", "-b", broker.bootstrap_servers)
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment(), start_new_session=True
    ) as running:
        os.close(theirs)
        said = b""
        for asked in (b"Password of typed:", b"Repeat for confirmation:"):
            while asked not in said:
                said += os.read(ours, 1000)
            os.write(ours, b"hunter2\n")
        assert running.stdout is not None
        assert b"typed  SCRAM-SHA-512" in running.stdout.read()
    said += os.read(ours, 1000)
    os.close(ours)
    assert running.returncode == 0
    assert b"create the SCRAM-SHA-512 credential" in said
    assert b"hunter2" not in said


def test_iterations_and_mechanisms_that_kafka_does_not_take_are_refused(broker: Broker) -> None:
    users(broker, "set", "ann", "--iterations", "100", code=2)
    users(broker, "set", "ann", "--mechanism", "PLAIN", code=2)


def test_deleting_asks_first_and_removes_one_or_all(broker: Broker) -> None:
    create(broker, "gone")
    create(broker, "gone", "--mechanism", "SCRAM-SHA-256")
    assert "--yes" in users(broker, "delete", "gone", code=1).stderr
    users(broker, "delete", "gone", "--dry-run")
    users(broker, "delete", "gone", "--mechanism", "SCRAM-SHA-256", "--yes")
    assert [row["mechanism"] for row in rows(broker, "describe", "gone")] == ["SCRAM-SHA-512"]
    (row,) = rows(broker, "delete", "gone", "--mechanism", "SCRAM-SHA-256", "--yes", code=1)
    assert row["error"] == "RESOURCE_NOT_FOUND"
    users(broker, "delete", "gone", "--yes")
    assert "no credentials" in users(broker, "delete", "gone", "--yes", code=1).stderr


def test_without_permission_the_error_says_what_is_missing() -> None:
    with guarded_broker() as guarded:
        assert "CLUSTER_AUTHORIZATION_FAILED" in users(guarded, "list", code=1).stderr
