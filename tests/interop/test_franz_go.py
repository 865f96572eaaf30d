"""franz-go, the Go client: records, transactions, exactly-once copies and groups of both protocols. It is franz/main.go."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.apache_kafka import ROOT, Barnabas

from tests.interop.side_by_side import IN_A_HURRY

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "franz"
SEEN = """\
records: missing 0
transactions: fenced true state CompleteCommit
copied 300 different 300 lag 0
classic group: seen 200 of the new protocol false
consumer group: seen 200 of the new protocol true
offsets: records 1000 left 0
"""


def built() -> Path:
    """The program; Go keeps what it compiled in its own cache, so only the first time is long."""
    if shutil.which("go") is None:
        pytest.skip("go is missing: install the package golang-go")
    program = ROOT / ".cache" / "franz"
    program.parent.mkdir(exist_ok=True)
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."], cwd=SOURCE, capture_output=True, text=True, timeout=580, check=False
    )
    if done.returncode != 0:
        about_us = "main.go" in done.stderr
        (pytest.fail if about_us else pytest.skip)(f"franz-go cannot be built: {done.stderr.strip()[-500:]}")
    return program


def test_franz_go_finds_what_it_expects() -> None:
    program = built()
    with Barnabas(IN_A_HURRY) as node:
        done = subprocess.run([str(program), node.bootstrap], capture_output=True, text=True, timeout=280, check=False)
        assert (done.returncode, done.stdout) == (0, SEEN), done.stderr[-2000:]
        assert node.stop() == 0
        assert "Traceback" not in node.log.read_text()
