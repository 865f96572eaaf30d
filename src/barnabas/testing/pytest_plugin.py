"""The fixtures `barnabas_broker`, `barnabas_topic`, `barnabas_topic_factory`, `barnabas_cluster` and `barnabas_config`.

Its one rule: pytest loads this in every test run of everyone who has barnabas installed, so nothing of barnabas is
imported until a fixture is used. With pytest-xdist each worker is a session and has its own broker.
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
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.settings import Setting

_READABLE_LENGTH = 100  # well below topic_names.MAX_LENGTH


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "barnabas_config", "configs of barnabas_broker and barnabas_cluster, as lines of key=value", type="linelist"
    )


class _AsItIs:
    """Imports the modules of barnabas without pytest's assertion rewriting.

    pytest rewrites the asserts of every package with a plugin, which makes the first import five times slower.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("barnabas.") else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    if _AsItIs not in sys.meta_path:
        sys.meta_path.insert(0, _AsItIs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "barnabas_topic(partitions=None, config=None): partitions and configs of barnabas_topic"
    )
    config.addinivalue_line(
        "markers",
        "barnabas_cluster(nodes=3, ...): what barnabas_cluster is like, as arguments of barnabas.testing.Cluster",
    )


@pytest.fixture(scope="session")
def barnabas_config(pytestconfig: pytest.Config) -> Mapping[str, Setting]:
    """The configs of `barnabas_broker` and `barnabas_cluster`, from pytest's ini file. Override it to compute them."""
    settings = {}
    for line in pytestconfig.getini("barnabas_config"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"barnabas_config: a line must have the form key=value, not {line!r}")
        settings[name.strip()] = value.strip()
    return settings


@pytest.fixture(scope="session")
def barnabas_broker(barnabas_config: Mapping[str, Setting]) -> Iterator[Broker]:
    """A running Kafka broker for this session. Clients connect to `barnabas_broker.bootstrap_servers`."""
    from barnabas.testing.broker import Broker

    with Broker(config=barnabas_config) as broker:
        yield broker


@pytest.fixture
def barnabas_topic_factory(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Iterator[Callable[..., str]]:
    """A function `(partitions=None, config=None)` that creates a topic with a unique name, and returns the name."""
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
    """The name of a new topic for this test. Configure it with `@pytest.mark.barnabas_topic(partitions=3)`."""
    marker = request.node.get_closest_marker("barnabas_topic")
    return barnabas_topic_factory(*marker.args, **marker.kwargs) if marker else barnabas_topic_factory()


@pytest.fixture
def barnabas_cluster(request: pytest.FixtureRequest, barnabas_config: Mapping[str, Setting]) -> Iterator[Cluster]:
    """A cluster of three nodes for this test alone, so that it may kill some of them.

    `@pytest.mark.barnabas_cluster(5, topics={"orders": 3})` passes other arguments to `barnabas.testing.Cluster`.
    """
    from barnabas.testing.cluster import Cluster

    marker = request.node.get_closest_marker("barnabas_cluster")
    given = dict(marker.kwargs) if marker else {}
    config = {**barnabas_config, **given.pop("config", {})}
    with Cluster(*(marker.args if marker else ()), config=config, **given) as cluster:
        yield cluster


def _fresh_name(test_name: str) -> str:
    readable = re.sub(r"[^a-zA-Z0-9_-]+", "-", test_name).strip("-")[:_READABLE_LENGTH]
    return f"{readable}-{os.urandom(4).hex()}"
