"""Temporary directories of brokers go to the test's own, where it can see what is left of them."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():  # its own way to read its schemas is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin  # noqa: F401


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made; empty when nothing was left behind."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory
