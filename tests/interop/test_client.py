"""The client against Apache Kafka, new and old, plain and secured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import HOST, OLD_VERSION, VERSION, ApacheKafka, free_ports

from barnabas.client import (
    AuthenticationError,
    CallTimeoutError,
    Cluster,
    CoordinatorType,
    NotKafkaError,
    TlsError,
    UnsupportedByNodeError,
    controller,
    coordinator,
    leader,
    load_settings_file,
    node,
)
from barnabas.client.state import EMPTY_STATE, merge_metadata, metadata_question
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from tests.client.certificates import PASSWORD, Certificates, make_certificates
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
REAUTHENTICATE_MS = 3_000


def run(scenario: Callable[[Cluster], Coroutine[Any, Any, None]], settings: dict[str, Any]) -> None:
    async def main() -> None:
        async with Cluster(settings) as cluster:
            await scenario(cluster)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def create(name: str, partitions: int = 3) -> CreateTopicsRequest:
    row = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[row], timeout_ms=20_000)


def list_offsets(topic: str, partition: int) -> ListOffsetsRequest:
    row = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    return ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[row])])


async def exercise(cluster: Cluster, topic: str) -> None:
    """Every kind of destination once."""
    created = await cluster.call(create(topic), controller())
    assert created.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    offsets = await cluster.call(list_offsets(topic, 2), leader(topic, 2))
    assert (offsets.topics[0].partitions[0].error_code, offsets.topics[0].partitions[0].offset) == (0, 0)
    described = await cluster.call(DescribeClusterRequest(), node(1))
    assert described.cluster_id == cluster.state.cluster_id
    groups = await cluster.call(DescribeGroupsRequest(groups=["g"]), coordinator("g"))
    assert groups.groups[0].group_state == "Dead"
    assert await cluster.coordinators(["a", "b"]) == {"a": 1, "b": 1}
    assert await cluster.coordinators(["t"], CoordinatorType.TRANSACTION) == {"t": 1}
    state = await cluster.metadata([topic], authorized_operations=True)
    assert len(state.topics[topic].partitions) == 3
    assert state.topics[topic].authorized_operations


@pytest.mark.parametrize("which", ["kafka", "old_kafka"])
def test_requests_find_their_way(which: str, request: pytest.FixtureRequest) -> None:
    kafka: ApacheKafka = request.getfixturevalue(which)

    async def scenario(cluster: Cluster) -> None:
        assert cluster.state.cluster_id == kafka.cluster_id
        await exercise(cluster, "client.exercise")

    run(scenario, {"bootstrap.servers": kafka.bootstrap})


@pytest.mark.parametrize("which", ["kafka", "old_kafka"])
def test_metadata_of_every_version_that_it_serves_tells_the_same(which: str, request: pytest.FixtureRequest) -> None:
    kafka: ApacheKafka = request.getfixturevalue(which)

    async def scenario(cluster: Cluster) -> None:
        await cluster.call(create("client.metadata"), controller())
        await cluster.call(list_offsets("client.metadata", 2), leader("client.metadata", 2))
        served = (await cluster.versions()).ranges[3]
        assert (served.first, served.last) == ((0, 12) if which == "old_kafka" else (0, 13))
        for version in range(served.first, served.last + 1):
            question = metadata_question(version, frozenset({"client.metadata", "client.not.created"}))
            response = await cluster.send(question.request, version=version)
            state = merge_metadata(EMPTY_STATE, response, version, question.asked, only=question.only)
            assert list(state.nodes) == [1]
            assert [each.leader_id for each in state.topics["client.metadata"].partitions.values()] == [1, 1, 1]
            assert state.errors == {"client.not.created": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert "client.not.created" not in (await cluster.metadata(None)).topics

    run(scenario, {"bootstrap.servers": kafka.bootstrap})


@pytest.mark.parametrize("which", ["kafka", "old_kafka"])
def test_controllers_can_be_begun_with(which: str, request: pytest.FixtureRequest) -> None:
    kafka: ApacheKafka = request.getfixturevalue(which)

    async def scenario(cluster: Cluster) -> None:
        assert (cluster.state.controller_id, list(cluster.state.nodes)) == (1, [1])
        row = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[row])
        response = await cluster.call(DescribeQuorumRequest(topics=[topic]), controller())
        assert response.topics[0].partitions[0].leader_id == 1

    run(scenario, {"bootstrap.controllers": kafka.controller})
    with pytest.raises(UnsupportedByNodeError, match=r"is a controller: use bootstrap\.controllers"):
        run(scenario, {"bootstrap.servers": kafka.controller})
    with pytest.raises(KafkaError, match="MISMATCHED_ENDPOINT_TYPE"):
        run(scenario, {"bootstrap.controllers": kafka.bootstrap})


def test_what_an_old_broker_does_not_know_is_said_with_the_version_that_does(old_kafka: ApacheKafka) -> None:
    async def scenario(cluster: Cluster) -> None:
        versions = await cluster.versions()
        assert versions.serves("DescribeTopicPartitions")
        topic = DescribeTopicPartitionsRequest.TopicRequest(name="nope")
        described = await cluster.call(DescribeTopicPartitionsRequest(topics=[topic]))
        assert described.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(UnsupportedByNodeError, match="needs version 2"):
            await cluster.call(DescribeClusterRequest(include_fenced_brokers=True))
        with pytest.raises(UnsupportedByNodeError, match=r"ListConfigResources in versions 0; .* needs version 1"):
            await cluster.call(ListConfigResourcesRequest(resource_types=[2]))

    run(scenario, {"bootstrap.servers": old_kafka.bootstrap})


# --- secured


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Secured:
    """A node with a listener for each way of being secured."""

    def __init__(self, kafka: ApacheKafka, ports: dict[str, int]) -> None:
        self.kafka = kafka
        self.addresses = {name: f"{HOST}:{port}" for name, port in ports.items()}


@pytest.fixture(scope="module", params=[VERSION, OLD_VERSION])
def secured(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Secured]:
    jars(request.param)
    names = ["PLAINTEXT", "CONTROLLER", "SASL_PLAINTEXT", "SSL", "SASL_SSL", "MUTUAL"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    users = 'user_alice="alice;secret" user_admin="admin"'
    overrides = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports['CONTROLLER']}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "connections.max.reauth.ms": str(REAUTHENTICATE_MS),
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        overrides[f"listener.name.{listener}.plain.sasl.jaas.config"] = f"{PLAIN_MODULE} required {users};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            overrides[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    scram = [f"SCRAM-SHA-{bits}=[name=alice,password=alice;secret]" for bits in (256, 512)]
    format_args = ["--standalone", *(arg for each in scram for arg in ("--add-scram", each))]
    kafka = ApacheKafka(overrides, version=request.param, format_args=format_args)
    kafka.address = (HOST, ports["PLAINTEXT"])
    kafka.controller = f"{HOST}:{ports['CONTROLLER']}"
    with kafka:
        yield Secured(kafka, ports)


def sasl(mechanism: str, password: str = "alice;secret", protocol: str = "SASL_PLAINTEXT") -> dict[str, Any]:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    jaas = f'{module} required username="alice" password="{password}";'
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def trusting(authority: Path) -> dict[str, Any]:
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": authority}


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_login_works(secured: Secured, certificates: Certificates, mechanism: str, protocol: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        await exercise(cluster, "client.secured")

    address = {"bootstrap.servers": secured.addresses[protocol]}
    run(scenario, address | trusting(certificates.authority) | sasl(mechanism, protocol=protocol))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_at_once(secured: Secured, mechanism: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            with pytest.raises(AuthenticationError, match="SASL_AUTHENTICATION_FAILED"):
                await Cluster(
                    {"bootstrap.servers": secured.addresses["SASL_PLAINTEXT"]} | sasl(mechanism, "wrong")
                ).start()

    asyncio.run(main())


def test_a_login_is_renewed_while_the_connection_is_used(secured: Secured) -> None:
    async def scenario(cluster: Cluster) -> None:
        connection = await cluster._connection(1)
        async with asyncio.timeout(30):
            for _ in range(5):
                await asyncio.gather(*(cluster.call(DescribeClusterRequest(), node(1)) for _ in range(20)))
                await asyncio.sleep(REAUTHENTICATE_MS / 2_000)
        assert connection.is_open
        assert await cluster._connection(1) is connection

    run(scenario, {"bootstrap.servers": secured.addresses["SASL_PLAINTEXT"]} | sasl("SCRAM-SHA-256"))


def test_tls_works_and_distrust_is_said(secured: Secured, certificates: Certificates) -> None:
    async def scenario(cluster: Cluster) -> None:
        await exercise(cluster, "client.tls")

    address = {"bootstrap.servers": secured.addresses["SSL"]}
    run(scenario, address | trusting(certificates.authority))
    with pytest.raises(TlsError, match="is not accepted"):
        run(scenario, address | trusting(certificates.other_authority))


def test_a_certificate_of_the_client_is_shown(secured: Secured, certificates: Certificates, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "client.properties"
        lines = trusting(certificates.authority) | {"bootstrap.servers": secured.addresses["MUTUAL"]}
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        with pytest.raises(TlsError, match="certificate"):
            await Cluster(load_settings_file(file)).start()
        store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates.client_store}
        async with Cluster(load_settings_file(file, store | {"ssl.key.password": PASSWORD})) as cluster:
            await exercise(cluster, "client.mutual")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("listener", "settings", "error", "says"),
    [
        (
            "SASL_PLAINTEXT",
            {},
            CallTimeoutError,
            "instead of answering Metadata .does the listener require TLS or SASL",
        ),
        ("SSL", {}, (NotKafkaError, CallTimeoutError), "TLS"),
        ("PLAINTEXT", {"security.protocol": "SSL"}, TlsError, "does it speak TLS"),
        ("PLAINTEXT", sasl("PLAIN"), AuthenticationError, "does not support SASL on this listener"),
    ],
)
def test_the_wrong_security_for_a_listener_is_named(
    secured: Secured, listener: str, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    async def main() -> None:
        given = {"bootstrap.servers": secured.addresses[listener], "default.api.timeout.ms": 2_000} | settings
        with pytest.raises(error, match=says):
            await Cluster(given).start()

    asyncio.run(main())
