"""Some seeds of the simulation: nothing is violated, two runs of a seed are the same, and planted bugs are found.

`make simulate SEEDS=1000` runs more. docs/reliability.md has the figures of the longest run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.simulation.mutations import MUTATIONS

AT_ONCE = 5
FIRST_SEEDS = range(1, 51, AT_ONCE)  # so a hundred with one and with three nodes
MORE_SEEDS = 8
LIMIT_S = 600


def simulate(*options: str, hash_seed: str = "0") -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.simulation", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("first", FIRST_SEEDS)
@pytest.mark.parametrize("nodes", [1, 3])
def test_nothing_is_violated(nodes: int, first: int) -> None:
    code, text = simulate("--nodes", str(nodes), "--first", str(first), "--seeds", str(AT_ONCE), "--jobs", "1")
    assert code == 0, text
    assert re.search(r"[1-9]\d* acknowledged", text), text


def test_two_runs_of_a_seed_are_the_same() -> None:
    code, text = simulate("--nodes", "3", "--first", "25", "--seeds", "1", "--duration", "5", "--jobs", "1")
    assert code == 0, text
    assert text.startswith("2 runs of 3 nodes, 0 failed"), text


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_planted_bug_is_found(name: str) -> None:
    """With the first seed that found it, or one of the next: after a change of barnabas, a seed has other events."""
    mutation = MUTATIONS[name]
    first = ("--first", str(mutation.seed), "--seeds", str(MORE_SEEDS), "--stop")
    code, text = simulate("--plant", name, "--nodes", str(mutation.nodes), *first, "--jobs", "1")
    assert code == 1, text
    assert f"--plant {name}" in text
