"""Nodes of Apache Kafka and of barnabas, side by side, for the tests of this folder.

They start JVMs, so they are collected only when asked for: `pytest tests/interop -m interop`, or BARNABAS_INTEROP=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.apache_kafka import OLD_VERSION, VERSION, ApacheKafka, Barnabas, Missing, ensure

from tests.interop.side_by_side import IN_A_HURRY, WITH_ACLS, SideBySide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    wanted = os.environ.get("BARNABAS_INTEROP") == "1" or config.getoption("markexpr") == "interop"
    return None if wanted else True


def jars(version: str) -> None:
    """End the whole run, with the reason, when Apache Kafka cannot be had."""
    try:
        ensure(version)
    except Missing as missing:
        pytest.exit(f"the interop tests cannot run: {missing}", returncode=1)


@pytest.fixture(scope="session")
def kafka() -> Iterator[ApacheKafka]:
    """One node of the reference version."""
    jars(VERSION)
    with ApacheKafka() as node:
        yield node


@pytest.fixture(scope="session")
def old_kafka() -> Iterator[ApacheKafka]:
    """One node of the last version that speaks the old requests."""
    jars(OLD_VERSION)
    with ApacheKafka(version=OLD_VERSION) as node:
        yield node


@pytest.fixture(scope="session")
def barnabas_node() -> Iterator[Barnabas]:
    """One node of barnabas, a process of its own."""
    with Barnabas() as node:
        yield node


@pytest.fixture(scope="session")
def both() -> Iterator[SideBySide]:
    """One node of each, with an authorizer."""
    jars(VERSION)
    settings = {**WITH_ACLS, **IN_A_HURRY}
    with ApacheKafka(settings) as kafka, Barnabas(settings) as barnabas:
        yield SideBySide(kafka, barnabas)
        barnabas.stop()
        said = barnabas.log.read_text()
    assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from barnabas import lake

    session = lake.session(**{"spark.master": "local[1]"})
    yield session
    session.stop()
