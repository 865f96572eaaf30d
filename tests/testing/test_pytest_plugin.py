"""The fixtures as a project that uses them has them: pytest runs as a process, and finds the plugin by its entry point."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

SEEN = """
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

def partitions(broker):
    found = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=20)
    return {name: len(topic.partitions) for name, topic in found.topics.items()}
"""


@pytest.fixture(autouse=True)
def strict(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaks or warns in a user's tests fails them; nor does it matter how these tests themselves are run."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\naddopts = --strict-markers -W error -p no:cacheprovider -p no:hypothesispytest")


def test_a_broker_is_shared_and_a_topic_is_a_test_s_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEEN
        + """
seen = []

@pytest.mark.parametrize("number", [1, 2])
def test_topic(barnabas_broker, barnabas_topic, number):
    seen.append((barnabas_broker, barnabas_topic))
    assert partitions(barnabas_broker) == {barnabas_topic: 1}
    assert barnabas_topic.startswith(f"test_topic-{number}-")

def test_they_were_different():
    (first_broker, first), (second_broker, second) = seen
    assert first_broker is second_broker
    assert first != second
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_with_on_the_shared_broker_fails_that_test_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEEN
        + """
def test_first(barnabas_broker):
    with barnabas_broker:
        pass

def test_second(barnabas_broker, barnabas_topic):
    assert partitions(barnabas_broker) == {barnabas_topic: 1}
"""
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the broker is already running: use it as it is*"])


def test_a_marker_says_what_the_topic_is_like_and_a_factory_makes_more(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEEN
        + """
pytestmark = pytest.mark.barnabas_topic(2)

def test_of_the_module(barnabas_broker, barnabas_topic):
    assert partitions(barnabas_broker) == {barnabas_topic: 2}

@pytest.mark.barnabas_topic(partitions=3, config={"cleanup.policy": "compact"})
def test_of_its_own(barnabas_broker, barnabas_topic):
    assert partitions(barnabas_broker) == {barnabas_topic: 3}
    resource = ConfigResource(ResourceType.TOPIC, barnabas_topic)
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap_servers})
    assert admin.describe_configs([resource])[resource].result(20)["cleanup.policy"].value == "compact"

def test_more(barnabas_broker, barnabas_topic_factory):
    first, second = barnabas_topic_factory(), barnabas_topic_factory(5)
    assert partitions(barnabas_broker) == {first: 1, second: 5}
    barnabas_broker.delete_topic(first)

@pytest.mark.barnabas_topic(partition=3)
def test_a_slip(barnabas_topic):
    pass
"""
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*unexpected keyword argument 'partition'*"])


def test_a_cluster_is_a_test_s_own_and_a_marker_says_what_it_is_like(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEEN
        + """
def test_three(barnabas_cluster):
    assert barnabas_cluster.node_ids == (1, 2, 3)
    barnabas_cluster.kill(3)

@pytest.mark.barnabas_cluster(2, topics=["orders"], config={"num.partitions": 5})
def test_two(barnabas_cluster):
    assert barnabas_cluster.node_ids == (1, 2)
    assert partitions(barnabas_cluster) == {"orders": 5}
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_settings_come_from_the_ini_file_and_a_fixture_of_the_same_name_may_add_to_them(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nbarnabas_config =\n    num.partitions = 4\n    auto.create.topics.enable=false\n")
    pytester.makepyfile(
        SEEN
        + """
@pytest.fixture(scope="session")
def barnabas_config(barnabas_config):
    assert barnabas_config == {"num.partitions": "4", "auto.create.topics.enable": "false"}
    return {**barnabas_config, "node.id": 6}

def test_it(barnabas_broker, barnabas_topic):
    assert partitions(barnabas_broker) == {barnabas_topic: 4}
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap_servers})
    assert list(admin.list_topics(timeout=20).brokers) == [6]
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_line_that_is_no_setting_is_an_error_that_shows_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nbarnabas_config = num.partitions\n")
    pytester.makepyfile("def test_it(barnabas_broker): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a line must have the form key=value, not 'num.partitions'*"])


def test_each_worker_of_xdist_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEEN
        + """
@pytest.mark.parametrize("number", range(6))
def test_it(barnabas_broker, barnabas_topic, number):
    assert partitions(barnabas_broker) == {barnabas_topic: 1}
"""
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=6)


def test_who_does_not_use_it_does_not_pay_for_it() -> None:
    """The modules that the plugin brings into every pytest run."""
    script = """
import sys, pytest, pathlib
before = set(sys.modules)
import barnabas.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["barnabas", "barnabas.testing", "barnabas.testing.pytest_plugin"]


def test_its_modules_are_not_rewritten_as_those_of_plugins_are(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
from _pytest.assertion.rewrite import AssertionRewritingHook

import pytest

pytest.register_assert_rewrite("barnabas.testing.broker", "rewritten")

def pytest_configure():
    import rewritten
    from barnabas.testing import broker

    assert isinstance(rewritten.__loader__, AssertionRewritingHook)
    assert not isinstance(broker.__loader__, AssertionRewritingHook)
"""
    )
    pytester.makepyfile(rewritten="", test_it="def test_it(): pass")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
