"""What executors lack is said by name, on Pythons that lack it."""

from __future__ import annotations

import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas import __version__
from barnabas.lake.spark import executors
from barnabas.lake.spark.executors import Executor, ExecutorsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = {"barnabas": "1.1", "pyspark": "4.3.0"}


@pytest.fixture
def other_python(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose executors may be given another Python."""
    own = spark.sparkContext.pythonExec
    yield spark
    spark.sparkContext.pythonExec = own


def test_executors_that_have_all_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    (found,) = executors.check(spark, [tmp_path])
    assert found.packages["barnabas"] == __version__
    assert (found.missing, found.missing_paths) == ({}, ())


def test_a_path_that_is_not_mounted_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        ExecutorsError, match=f"{tmp_path}/absent does not exist or cannot be read; mount it at the same path"
    ):
        executors.check(spark, [tmp_path, tmp_path / "absent"])


def test_a_python_without_barnabas_still_tells(other_python: SparkSession, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    other_python.sparkContext.pythonExec = str(python)
    with pytest.raises(ExecutorsError) as caught:
        executors.check(other_python)
    assert f"{python} (Python" in str(caught.value)
    assert "cannot import barnabas, pyarrow" in str(caught.value)
    assert f"install barnabas[lake]=={__version__} there, or set PYSPARK_PYTHON" in str(caught.value)


def test_a_python_that_is_not_there_is_named(other_python: SparkSession, tmp_path: Path) -> None:
    other_python.sparkContext.pythonExec = str(tmp_path / "python")
    with pytest.raises(ExecutorsError, match=f"{tmp_path}/python does not exist; executors need the driver's Python"):
        executors.check(other_python)


def test_another_version_of_python_is_named() -> None:
    said = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot"
    reason = executors._why_no_python(said)
    assert reason is not None
    assert "Python has version 3.12; executors need the driver's Python" in reason


def test_another_version_of_barnabas_is_named() -> None:
    executor = Executor("w1", "/work", "/opt/python", "3.11.2", {**HERE, "barnabas": "1.0"}, {}, ())
    (line,) = executors.complaints(executor, HERE)
    assert line.startswith("w1: /opt/python (Python 3.11.2) has barnabas 1.0, the driver has 1.1; install")
