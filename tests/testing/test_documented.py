"""What docs/testing.md shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


PROGRAMS = [block for block in blocks("python") if "def test_" not in block]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(number: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAMS[number]], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_tests_pass_with_the_settings(pytester: pytest.Pytester) -> None:
    (ini,) = blocks("ini")
    (tests,) = (block for block in blocks("python") if "def test_" in block)
    pytester.makeini(ini)
    pytester.makepyfile(tests)
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=3)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_the_script_prints_what_it_wrote() -> None:
    (script,) = blocks("sh")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, env=env, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "two apples\n"), done.stderr
