"""Some seeds of the simulation: nothing is violated, two runs of a seed are the same, and planted bugs are found.

`make simulate SEEDS=1000` runs more. docs/reliability.md has the figures of the longest run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

SEEDS = {1: 8, 3: 8}  # by the number of nodes
FOUND_SOON = ("aborted-visible", "marker-lost")
LIMIT_S = 600


def simulate(*options: str, hash_seed: str = "0") -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.simulation", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("nodes", SEEDS)
def test_nothing_is_violated(nodes: int) -> None:
    code, text = simulate("--nodes", str(nodes), "--seeds", str(SEEDS[nodes]), "--jobs", "1")
    assert code == 0, text
    assert re.search(r"[1-9]\d* acknowledged", text), text


def test_two_runs_of_a_seed_are_the_same() -> None:
    code, text = simulate("--nodes", "3", "--first", "25", "--seeds", "1", "--duration", "5", "--jobs", "1")
    assert code == 0, text
    assert text.startswith("2 runs of 3 nodes, 0 failed"), text


@pytest.mark.parametrize("name", FOUND_SOON)
def test_a_planted_bug_is_found(name: str) -> None:
    code, text = simulate("--plant", name, "--nodes", "1", "--seeds", "3", "--duration", "10", "--jobs", "1")
    assert code == 1, text
    assert f"--plant {name}" in text
