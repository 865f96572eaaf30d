"""From a command to a cluster: a node that answers, one that is not there, settings that are wrong."""

from __future__ import annotations

import datetime
import socket

import pytest

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.terminal.failures import Failure
from barnabas.client.cluster import Cluster
from barnabas.testing import Broker, Security
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


@pytest.mark.parametrize(
    ("hosts", "days", "advice"),
    [
        (["127.0.0.1"], None, "trust the authority that signed it"),
        (["elsewhere.example"], 9, "connect to a name or an address that is in the certificate"),
        (["127.0.0.1"], -9, "the node needs a new certificate"),
    ],
)
def test_what_to_do_about_a_certificate_depends_on_what_is_wrong_with_it(
    hosts: list[str], days: int | None, advice: str
) -> None:
    security = Security("SSL")
    valid_from = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=20)
    other = (Security("SSL") if days is None else security).authority.issue(
        "other", hosts, valid_from=valid_from, valid_for=datetime.timedelta(days=20 + (days or 9))
    )
    own = {
        "listener.name.ssl.ssl.keystore.key": other.key,
        "listener.name.ssl.ssl.keystore.certificate.chain": other.chain,
    }
    with Broker(security=security, config=own) as broker:
        given = {name: text for name, text in broker.client_config().items() if name != "bootstrap.servers"}
        connection = profiles.resolve({}, bootstrap_servers=broker.bootstrap_servers, given=given)
        with pytest.raises(Failure) as failure:
            run(connection, node_ids)
    assert failure.value.advice is not None and failure.value.advice.startswith(advice)
