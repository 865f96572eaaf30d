"""The programs of the clients, as commands; those of Java and Go are built here if their tools are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from tools.apache_kafka import ROOT, TOOL_JVM, VERSION, Missing, ensure, java_command

from tests.soak.libraries import LIBRARIES

HERE = Path(__file__).parent
BUILD_TIMEOUT_S = 900


NAMES = (*LIBRARIES, "java", "franz-go")


def commands(names: Collection[str], classes: Path) -> tuple[dict[str, list[str]], list[str]]:
    """By the name of each client; and why some are missing."""
    found = {name: [sys.executable, "-m", "tests.soak.worker", name] for name in LIBRARIES if name in names}
    missing = []
    for name, build in (("java", _java), ("franz-go", _franz)):
        if name not in names:
            continue
        try:
            found[name] = [*build(classes), name]
        except Missing as error:
            missing.append(f"{name} takes no part: {error}")
    return found, missing


def _java(classes: Path) -> list[str]:
    if shutil.which("javac") is None:
        raise Missing("javac is missing: install the package openjdk-17-jdk-headless")
    libraries = f"{ensure(VERSION) / 'libs'}/*"
    _build(["javac", "-Xlint:all", "-Werror", "-d", str(classes), "-cp", libraries, "Soak.java"], HERE / "java")
    *before, path, main = java_command(VERSION, TOOL_JVM, "tools", "Soak")
    return [*before, f"{classes}:{path}", main]


def _franz(classes: Path) -> list[str]:
    if shutil.which("go") is None:
        raise Missing("go is missing: install the package golang-go")
    program = ROOT / ".cache" / "soak-franz"
    program.parent.mkdir(exist_ok=True)
    _build(["go", "build", "-o", str(program), "."], HERE / "franz")
    return [str(program)]


def _build(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Missing(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-500:]}")
