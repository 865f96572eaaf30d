"""`barnabas kafka-dump-log` beside kafka-dump-log, on the same files under the same names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tools.apache_kafka import TOOL_JVM, VERSION, java_command, tool_class

from tests.cli.dump_log_cases import CASES, essence, prepare
from tests.command_line import invoke
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("case", CASES)
def test_both_print_the_same(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars(VERSION)
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        prepare(tmp_path / name)
    command = [*java_command(VERSION, TOOL_JVM, "tools", tool_class("kafka-dump-log", VERSION)), *CASES[case]]
    theirs = subprocess.run(
        command, cwd=tmp_path / "theirs", env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    monkeypatch.chdir(tmp_path / "ours")
    ours = invoke("kafka-dump-log", *CASES[case])
    assert ours.stdout == theirs.stdout
    assert ours.exit_code == theirs.returncode
    assert essence(ours.stderr) == essence(theirs.stderr.replace("/theirs/", "/ours/"))
