"""docs/ci.md says what happens: its commands and the steps of its job are run as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.testing import Broker
from tests.command_line import WITHOUT_PROFILES, Command

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text()
FIELDS = ["action", "kind", "name", "field", "before", "after", "description"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2}) as running:
        yield running


class Shell:
    """Runs scripts as a job does, in a folder of its own, with `barnabas` on the path."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder, self.broker = folder, broker
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "barnabas"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
        program.chmod(0o755)
        self.env = {
            **os.environ,
            **WITHOUT_PROFILES,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)

    def output(self) -> str:
        return (self.folder / "output").read_text().splitlines()[-1]


@pytest.fixture
def shell(tmp_path: Path, broker: Broker) -> Shell:
    return Shell(tmp_path, broker)


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def steps() -> dict[str, str]:
    job: dict[str, Any] = yaml.safe_load(block("yaml"))["jobs"]["declared"]
    return {step["name"]: step["run"] for step in job["steps"] if "name" in step}


def test_a_fresh_export_has_no_drift(shell: Shell) -> None:
    done = shell.run(block("sh"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "no drift" in done.stderr


def test_the_job_plans_validates_applies_and_raises_the_alarm(shell: Shell) -> None:
    job = steps()
    assert list(job) == ["plan", "validate", "apply", "alarm"]
    assert shell.run(block("sh")).returncode == 0
    assert shell.run(job["plan"]).returncode == 0
    assert shell.output() == "drift=false"
    assert json.loads((shell.folder / "plan.json").read_text()) == []
    assert shell.run(job["alarm"]).returncode == 0

    (shell.folder / "cluster" / "more.yaml").write_text("topics: {fresh: {configs: {retention.ms: 1000}}}\n")
    assert shell.run(job["plan"]).returncode == 0
    assert shell.output() == "drift=true"
    rows = json.loads((shell.folder / "plan.json").read_text())
    assert [list(row) for row in rows] == [FIELDS]
    assert "fresh" in (shell.folder / "summary").read_text()
    assert shell.run(job["alarm"]).returncode == 2
    assert shell.run(job["validate"]).returncode == 0
    assert shell.run(job["alarm"]).returncode == 2, "nothing was changed"
    assert shell.run(job["apply"]).returncode == 0
    assert shell.run(job["alarm"]).returncode == 0

    (shell.folder / "cluster" / "more.yaml").write_text("topics: {fresh: {configs: {retention.msec: 1000}}}\n")
    before = (shell.folder / "output").read_text()
    wrong = shell.run(job["plan"])
    assert wrong.returncode == 1
    assert (
        "cluster/more.yaml:1:28: topic fresh: unknown config retention.msec; did you mean retention.ms?" in wrong.stderr
    )
    assert (shell.folder / "output").read_text() == before
    shell.env["BARNABAS_BOOTSTRAP_SERVERS"] = "127.0.0.1:1"
    shell.env["BARNABAS_DEFAULT_API_TIMEOUT_MS"] = "300"
    shell.env["BARNABAS_REQUEST_TIMEOUT_MS"] = "200"
    assert shell.run(job["plan"]).returncode == 1


def test_rows_of_a_plan_always_have_the_same_fields() -> None:
    text = """\
topics: {new: , orders: {partitions: 3, configs: {retention.ms: 1}}, old: {state: absent}}
acls: [{principal: User:a, operation: READ, resource: topic:x, description: why}]
quotas: [{entity: {user: u}, quotas: {producer_byte_rate: 1}}]
users: {u: {SCRAM-SHA-256: {password: {env: A}}}}
brokers: {<default>: {log.cleaner.threads: 2}}
"""
    config = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with Broker({"orders": 2, "old": 1}, config={**config, "super.users": "User:ANONYMOUS"}) as broker:
        rows = Command().rows(broker, "plan", "-f", "-", stdin=text, code=2)
    assert {(row["action"], row["kind"]) for row in rows} == {
        ("create", "topic"),
        ("alter", "topic"),
        ("delete", "topic"),
        ("create", "acl"),
        ("alter", "quota"),
        ("create", "user"),
        ("alter", "broker"),
    }
    assert {tuple(row) for row in rows} == {tuple(FIELDS)}
    documented = re.findall(r"^\| (`.*?) \|", PAGE[PAGE.index("## The plan as JSON") :], re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(documented)) == FIELDS
