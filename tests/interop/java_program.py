"""Java programs of this folder, compiled against the libraries of the reference version."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.apache_kafka import TOOL_JVM, VERSION, ensure, java_command

from tests.interop.conftest import jars


def compiled(source: str, classes: Path) -> list[str]:
    """Compile java/`source`.java. Returns the command that runs it; its arguments follow."""
    jars(VERSION)
    if shutil.which("javac") is None:
        pytest.skip("javac is missing: install the package openjdk-17-jdk-headless")
    path = Path(__file__).parent / "java" / f"{source}.java"
    libraries = f"{ensure(VERSION) / 'libs'}/*"
    done = subprocess.run(
        ["javac", "-Xlint:all", "-Werror", "-d", str(classes), "-cp", libraries, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *before, class_path, main = java_command(VERSION, TOOL_JVM, "tools", source)
    return [*before, f"{classes}:{class_path}", main]


def printed(command: list[str], *args: str) -> tuple[int, str, str]:
    """Run a program. Returns its exit code, output and errors."""
    done = subprocess.run(
        [*command, *args], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr
