"""The generated classes are what the schema says, and the check sees when they are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    without = shutil.ignore_patterns("__pycache__")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "generate.py", tmp_path / "tools")
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    shutil.copytree(ROOT / "src" / "barnabas" / "wire", tmp_path / "src" / "barnabas" / "wire", ignore=without)
    shutil.copy(ROOT / "src" / "barnabas" / "__init__.py", tmp_path / "src" / "barnabas")
    return tmp_path


def test_the_tree_is_what_the_schema_says() -> None:
    result = generate(ROOT, "--check")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_change_of_the_schema_is_seen_and_written(copy: Path) -> None:
    schema = copy / "schema" / "messages.txt"
    schema.write_text(schema.read_text().replace("  client_software_name string", "  client_software_title string"))
    module = copy / "src" / "barnabas" / "wire" / "messages" / "api_versions.py"

    result = generate(copy, "--check")
    assert result.returncode == 1
    assert "api_versions.py is out of date; run `make generate`" in result.stderr
    assert "client_software_title" not in module.read_text()

    assert generate(copy).returncode == 0
    assert "client_software_title: str" in module.read_text()
    assert generate(copy, "--check").returncode == 0


def test_a_module_that_the_schema_does_not_have_is_seen_and_removed(copy: Path) -> None:
    stray = copy / "src" / "barnabas" / "wire" / "messages" / "stray.py"
    stray.touch()
    result = generate(copy, "--check")
    assert result.returncode == 1
    assert "stray.py" in result.stderr
    assert generate(copy).returncode == 0
    assert not stray.exists()


def test_an_edit_of_a_generated_module_is_seen(copy: Path) -> None:
    module = copy / "src" / "barnabas" / "wire" / "records" / "raft.py"
    module.write_text(module.read_text() + "\nEDITED = True\n")
    assert "raft.py" in generate(copy, "--check").stderr
