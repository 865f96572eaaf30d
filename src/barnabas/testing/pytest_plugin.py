"""The fixtures `barnabas_broker`, `barnabas_topic`, `barnabas_topic_factory` and `barnabas_config`.

Its one rule: pytest loads this in every run of everyone who has barnabas installed, so nothing of barnabas is imported until a
fixture is used. With pytest-xdist each worker is a session, and has a broker of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.settings import Setting

_READABLE_LENGTH = 100  # of the 249 that a topic's name may have


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("barnabas_config", "server.properties of barnabas_broker: lines of key=value", type="linelist")


class _AsItIs:
    """Finds modules of barnabas as Python does.

    pytest rewrites the asserts of every package that comes with a plugin, which makes the first import five times as slow.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("barnabas.") else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    if _AsItIs not in sys.meta_path:
        sys.meta_path.insert(0, _AsItIs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "barnabas_topic(partitions=None, config=None): what barnabas_topic is like")


@pytest.fixture(scope="session")
def barnabas_config(pytestconfig: pytest.Config) -> Mapping[str, Setting]:
    """The settings of `barnabas_broker`, from pytest's ini file; override this fixture to compute them."""
    settings = {}
    for line in pytestconfig.getini("barnabas_config"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"barnabas_config: a line is key=value, not {line!r}")
        settings[name.strip()] = value.strip()
    return settings


@pytest.fixture(scope="session")
def barnabas_broker(barnabas_config: Mapping[str, Setting]) -> Iterator[Broker]:
    """A running Kafka broker of this session; clients reach it at `barnabas_broker.bootstrap_servers`."""
    from barnabas.testing.broker import Broker

    with Broker(config=barnabas_config) as broker:
        yield broker


@pytest.fixture
def barnabas_topic_factory(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Iterator[Callable[..., str]]:
    """`barnabas_topic_factory(partitions=None, config=None)` creates a topic and gives its name, which no other test has."""
    from barnabas.wire import ErrorCode, KafkaError

    created = []

    def create(partitions: int | None = None, config: Mapping[str, Setting] | None = None) -> str:
        name = _fresh_name(request.node.name)
        barnabas_broker.create_topic(name, partitions, config=config)
        created.append(name)
        return name

    yield create
    for name in created if barnabas_broker.is_running else ():
        try:
            barnabas_broker.delete_topic(name)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # the test has deleted it
                raise


@pytest.fixture
def barnabas_topic(request: pytest.FixtureRequest, barnabas_topic_factory: Callable[..., str]) -> str:
    """The name of a new topic of this test alone; `@pytest.mark.barnabas_topic(partitions=3)` says what it is like."""
    marker = request.node.get_closest_marker("barnabas_topic")
    return barnabas_topic_factory(*marker.args, **marker.kwargs) if marker else barnabas_topic_factory()


def _fresh_name(test_name: str) -> str:
    readable = re.sub(r"[^a-zA-Z0-9_-]+", "-", test_name).strip("-")[:_READABLE_LENGTH]
    return f"{readable}-{os.urandom(4).hex()}"
