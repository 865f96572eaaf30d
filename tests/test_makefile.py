"""The Makefile: what it would do is shown without doing it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TARGETS = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
STUB = "#!/bin/sh\ntouch {started}\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_a_dry_run_starts_nothing(target: str, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    programs, started = tmp_path / "programs", tmp_path / "started"
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    programs.mkdir()
    for path in (*(tmp_path / ".venv" / "bin" / name for name in ("python", "barnabas", "mypy")), programs / "python3"):
        path.write_text(STUB.format(started=started))
        path.chmod(0o755)
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        ["make", "-n", target, f"PYTHON={programs / 'python3'}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert sorted(tmp_path.rglob("*")) == before
