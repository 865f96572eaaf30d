"""From a command to a cluster: a node that answers, one that is not there, settings that are wrong."""

from __future__ import annotations

import socket

import pytest

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.terminal.failures import Failure
from barnabas.client.cluster import Cluster
from barnabas.testing import Broker
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest


async def node_ids(cluster: Cluster) -> list[int]:
    return sorted((await cluster.refresh([])).nodes)


def test_a_command_asks_a_cluster() -> None:
    with Broker() as broker:
        assert run(profiles.resolve({}, bootstrap_servers=broker.bootstrap_servers), node_ids) == [1]


def test_a_refused_connection_is_a_failure_that_names_the_address_and_its_origin() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    connection = profiles.resolve({}, bootstrap_servers=address, given={"default.api.timeout.ms": "300"})
    with pytest.raises(Failure) as failure:
        run(connection, node_ids)
    assert failure.value.message.startswith(f"{address} (--bootstrap-server): ")
    assert failure.value.advice is not None


def test_a_setting_that_is_wrong_is_named_with_its_origin() -> None:
    connection = profiles.resolve({}, given={"security.protocol": "NONSENSE"})
    with pytest.raises(Failure, match=r"^-X: .*security\.protocol"):
        run(connection, node_ids)


def test_a_broker_that_is_too_old_is_a_failure_that_says_what_it_lacks() -> None:
    async def ask_for_more(cluster: Cluster) -> None:
        await cluster.call(DescribeClusterRequest(), least_version=99, feature="the future")

    with Broker() as broker, pytest.raises(Failure, match="the future needs version 99") as failure:
        run(profiles.resolve({}, bootstrap_servers=broker.bootstrap_servers), ask_for_more)
    assert failure.value.advice is not None


def test_a_reader_who_has_seen_enough_is_no_failure_of_the_connection() -> None:
    async def write_on(cluster: Cluster) -> None:
        raise BrokenPipeError

    with Broker() as broker, pytest.raises(BrokenPipeError):
        run(profiles.resolve({}, bootstrap_servers=broker.bootstrap_servers), write_on)
