"""Launchers with the names of Kafka's scripts: installed, run by shell scripts, and removed again."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from barnabas.cli.kafka.without_drop_in import WITHOUT_DROP_IN
from barnabas.cli.main import COMMANDS, DROP_INS
from barnabas.testing import Broker
from tests.command_line import environment, invoke

SCRIPT = """
set -euo pipefail
kafka-topics.sh --bootstrap-server "$SERVER" --create --topic orders --partitions 3
kafka-configs.sh --bootstrap-server "$SERVER" --entity-type topics --entity-name orders \\
  --alter --add-config retention.ms=86400000
printf 'a:one apple\\nb:two pears\\n' |
  kafka-console-producer.sh --bootstrap-server "$SERVER" --topic orders --property parse.key=true --property key.separator=:
kafka-console-consumer.sh --bootstrap-server "$SERVER" --topic orders --from-beginning --max-messages 2 --group app |
  sort
kafka-get-offsets --bootstrap-server "$SERVER" --topic orders | awk -F: '{sum += $3} END {print sum " records"}'
kafka-consumer-groups.sh --bootstrap-server "$SERVER" --list
if kafka-topics.sh --bootstrap-server "$SERVER" --describe --topic missing >/dev/null 2>&1; then exit 9; fi
"""


def installed(directory: Path, **more: str) -> dict[str, str]:
    """Environment of a shell that finds the launchers first."""
    invoke("kafka-tools", "install", directory, code=0)
    return environment({"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}", **more})


def test_a_shell_script_for_kafkas_tools_runs_unchanged(tmp_path: Path) -> None:
    with Broker() as broker:
        env = installed(tmp_path / "bin", SERVER=broker.bootstrap_servers)
        done = subprocess.run(
            ["bash", "-c", SCRIPT], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["Created topic orders.", "Completed updating config for topic orders."]
    assert lines[-4:] == ["one apple", "two pears", "2 records", "app"]


def test_arguments_reach_the_tool_as_they_were_written(tmp_path: Path) -> None:
    env = installed(tmp_path / "a folder with 'quotes'")
    with Broker() as broker:
        line = f"kafka-topics.sh --bootstrap-server {broker.bootstrap_servers} --create --topic 'two words' ; echo $?"
        done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, check=False)
    assert "two words" in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1"


def test_a_folder_called_barnabas_does_not_get_in_the_way(tmp_path: Path) -> None:
    env = installed(tmp_path / "bin")
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "__init__.py").write_text("raise SystemExit(7)")
    done = subprocess.run(["kafka-topics.sh", "--version"], env=env, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"4.3.1\n")


def test_launchers_of_a_virtual_environment_work_without_activating_it(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "all.pth").write_text("\n".join(path for path in sys.path if path))
    python = tmp_path / "venv" / "bin" / "python"
    bare = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": "/nowhere"}
    command = [str(python), "-m", "barnabas", "kafka-tools", "install", "bin"]
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Try: export PATH={tmp_path}/bin:$PATH" in done.stderr
    launcher = tmp_path / "bin" / "kafka-storage.sh"
    assert f"exec {python} " in launcher.read_text()
    assert len(subprocess.check_output([launcher, "random-uuid"], env=bare, cwd="/", text=True).strip()) == 22


def test_every_drop_in_has_both_names_and_only_these_files_are_written(tmp_path: Path) -> None:
    result = invoke("kafka-tools", "install", tmp_path, code=0)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}{end}" for name in DROP_INS for end in ("", ".sh")}
    assert all(os.access(path, os.X_OK) for path in tmp_path.iterdir())
    assert result.stdout == ""


def test_foreign_files_stay_unless_forced(tmp_path: Path) -> None:
    foreign = tmp_path / "kafka-topics.sh"
    foreign.write_text("#!/bin/sh\necho Kafka's own\n")
    refused = invoke("kafka-tools", "install", tmp_path, code=1)
    assert "kafka-topics.sh" in refused.stderr and "--force" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kafka-topics.sh"]
    invoke("kafka-tools", "install", tmp_path, "--force", code=0)
    assert "barnabas" in foreign.read_text()


def test_a_forced_install_replaces_a_link_and_not_its_target(tmp_path: Path) -> None:
    target = tmp_path / "kafka" / "kafka-acls.sh"
    target.parent.mkdir()
    target.write_text("Kafka's own")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kafka-acls.sh").symlink_to(target)
    invoke("kafka-tools", "install", tmp_path / "bin", code=1)
    invoke("kafka-tools", "install", tmp_path / "bin", "--force", code=0)
    assert target.read_text() == "Kafka's own"
    assert not (tmp_path / "bin" / "kafka-acls.sh").is_symlink()


def test_a_directory_in_the_way_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "kafka-configs").mkdir()
    refused = invoke("kafka-tools", "install", tmp_path, "--force", code=1)
    assert "kafka-configs: this is a directory" in refused.stderr
    assert len(list(tmp_path.iterdir())) == 1


def test_an_install_is_repeated_without_force(tmp_path: Path) -> None:
    invoke("kafka-tools", "install", tmp_path, code=0)
    (tmp_path / "kafka-topics").write_text(
        (tmp_path / "kafka-topics").read_text().replace(sys.executable, "/old/python")
    )
    invoke("kafka-tools", "install", tmp_path, code=0)
    assert sys.executable in (tmp_path / "kafka-topics").read_text()


def test_uninstall_removes_launchers_and_nothing_else(tmp_path: Path) -> None:
    invoke("kafka-tools", "install", tmp_path, code=0)
    (tmp_path / "kafka-topics.sh").write_text("replaced by a person")
    (tmp_path / "notes.txt").write_text("mine")
    result = invoke("kafka-tools", "uninstall", tmp_path, code=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kafka-topics.sh", "notes.txt"]
    assert f"removed {2 * len(DROP_INS) - 1} launchers" in result.stderr


def test_a_missing_directory_and_a_read_only_one_are_named(tmp_path: Path) -> None:
    assert "No such file" in invoke("kafka-tools", "uninstall", tmp_path / "missing", code=1).stderr
    (tmp_path / "file").write_text("")
    result = invoke("kafka-tools", "install", tmp_path / "file" / "bin", code=1)
    assert "Not a directory" in result.stderr


def test_another_script_that_comes_first_on_the_path_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "kafka", tmp_path / "bin"
    invoke("kafka-tools", "install", first, code=0)
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{second}")
    assert f"warning: {first}/kafka-topics.sh comes first" in invoke("kafka-tools", "install", second, code=0).stderr
    monkeypatch.setenv("PATH", f"{second}{os.pathsep}{first}")
    assert "PATH" not in invoke("kafka-tools", "install", second, code=0).stderr


def test_the_list_has_every_script_once_with_what_to_use_instead() -> None:
    rows = invoke("kafka-tools", "list", "-o", "json", code=0).json
    assert [row["name"] for row in rows if row["dropIn"]] == DROP_INS
    others = [row for row in rows if not row["dropIn"]]
    assert [row["name"] for row in others] == list(WITHOUT_DROP_IN)
    assert all(row["instead"] for row in others)
    assert not set(WITHOUT_DROP_IN) & set(COMMANDS)


@pytest.mark.parametrize("name", ["connect-standalone", "connect-plugin-path", "connect-standalone.sh"])
def test_a_script_without_a_drop_in_is_refused_with_the_reason(name: str) -> None:
    result = invoke(name, "--list", code=2)
    assert "Kafka Connect is not part of barnabas" in result.stderr
    assert "Use: the script of Apache Kafka" in result.stderr
