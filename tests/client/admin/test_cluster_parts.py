"""`Brokers`, `Quorum`, `Features` and `Telemetry`: a node of barnabas, and scripted nodes that are old, or late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.brokers import Brokers
from barnabas.client.admin.features import Features, FeatureUpdate, UpgradeType
from barnabas.client.admin.part import TimedOutError
from barnabas.client.admin.quorum import Quorum, RaftEndpoint
from barnabas.client.admin.telemetry import Telemetry
from barnabas.client.state import BROKERS, CONTROLLERS
from barnabas.client.versions import NodeVersions
from barnabas.security.acl import AclOperation
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from barnabas.wire.messages.unregister_broker import UnregisterBrokerResponse
from barnabas.wire.messages.update_features import UpdateFeaturesResponse
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, one_broker, peer, ranges, read_request

SOME_ID = Uuid(b"\x07" * 16)
Scenario = Callable[[Cluster], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def run(scenario: Scenario, **settings: str) -> None:
    async def main() -> None:
        async with Cluster({name.replace("_", "."): value for name, value in settings.items()}) as cluster:
            await scenario(cluster)

    asyncio.run(main())


def on(broker: Broker, scenario: Scenario) -> None:
    run(scenario, bootstrap_servers=broker.bootstrap_servers)


def on_controller(broker: Broker, scenario: Scenario) -> None:
    run(scenario, bootstrap_controllers=broker.listeners["CONTROLLER"])


# --- a node of barnabas


def test_brokers_and_controllers_are_described(broker: Broker) -> None:
    async def brokers(cluster: Cluster) -> None:
        found = await Brokers(cluster).describe_cluster(include_fenced_brokers=True, include_authorized_operations=True)
        assert (found.cluster_id, found.controller_id, found.endpoint_type) == (broker.cluster_id, 1, BROKERS)
        assert [(node.id, node.port, node.is_fenced) for node in found.nodes] == [(1, broker.port, False)]
        assert AclOperation.ALTER in (found.authorized_operations or ())

    async def controllers(cluster: Cluster) -> None:
        found = await Brokers(cluster).describe_cluster()
        assert (found.controller_id, found.endpoint_type) == (1, CONTROLLERS)
        assert f"{found.nodes[0].host}:{found.nodes[0].port}" == broker.listeners["CONTROLLER"]

    on(broker, brokers)
    on_controller(broker, controllers)


def test_a_broker_that_is_not_registered_cannot_be_forgotten(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(KafkaError) as refused:
            await Brokers(cluster).unregister_broker(77)
        assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED

    on(broker, scenario)


def test_each_node_tells_its_versions_and_one_that_is_not_there_an_error(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        found = await Brokers(cluster).api_versions([1, 9], timeout_ms=2000)
        assert isinstance(found[1], NodeVersions)
        assert found[1].serves("DescribeTopicPartitions")
        assert isinstance(found[9], KafkaError)
        assert found[9].code is ErrorCode.BROKER_NOT_AVAILABLE

    on(broker, scenario)


def test_the_quorum_is_described_through_brokers_and_controllers(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        info = await Quorum(cluster).describe_quorum()
        assert (info.leader_id, [voter.replica_id for voter in info.voters], info.observers) == (1, [1], ())
        assert info.leader is not None
        assert 0 < info.high_watermark <= info.leader.log_end_offset
        assert info.leader.last_fetch_timestamp_ms is not None
        assert [str(each) for each in info.nodes[1]] == [f"CONTROLLER://{broker.listeners['CONTROLLER']}"]

    on(broker, scenario)
    on_controller(broker, scenario)


def test_voters_that_are_wrong_are_refused(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        quorum = Quorum(cluster)
        own = (await quorum.describe_quorum()).voters[0].replica_directory_id
        with pytest.raises(KafkaError) as unknown:
            await quorum.remove_raft_voter(7, SOME_ID)
        with pytest.raises(KafkaError) as twice:
            await quorum.add_raft_voter(1, own, [RaftEndpoint("CONTROLLER", "127.0.0.1", 9093)])
        assert (unknown.value.code, twice.value.code) == (ErrorCode.VOTER_NOT_FOUND, ErrorCode.DUPLICATE_VOTER)

    on(broker, scenario)


def test_a_voter_is_updated_through_controllers_alone(broker: Broker) -> None:
    endpoint = RaftEndpoint("CONTROLLER", *_address(broker.listeners["CONTROLLER"]))

    async def through_controllers(cluster: Cluster) -> None:
        own = (await Quorum(cluster).describe_quorum()).voters[0].replica_directory_id
        await Quorum(cluster).update_raft_voter(1, own, [endpoint])

    async def through_brokers(cluster: Cluster) -> None:
        with pytest.raises(UnsupportedByNodeError, match=r"bootstrap\.controllers"):
            await Quorum(cluster).update_raft_voter(1, SOME_ID, [endpoint])

    on_controller(broker, through_controllers)
    on(broker, through_brokers)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def test_features_go_down_and_up_and_a_check_changes_nothing(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        features = Features(cluster)
        down = {"group.version": FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)}
        assert await features.update_features(down, validate_only=True) == {"group.version": None}
        assert (await features.describe_features()).level("group.version") == 1
        assert await features.update_features(down) == {"group.version": None}
        found = await features.describe_features(node_id=1)
        assert found.level("group.version") == 0
        assert found.supported_features["group.version"] == (0, 1)
        assert await features.update_features({"group.version": FeatureUpdate(1)}) == {"group.version": None}

    on(broker, scenario)


def test_a_level_that_is_not_supported_is_an_error_of_each_feature(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        wanted = {"share.version": FeatureUpdate(9), "group.version": FeatureUpdate(1)}
        results = await Features(cluster).update_features(wanted)
        codes = {result.code for result in results.values() if result is not None}
        assert (len(results), codes) == (2, {ErrorCode.INVALID_UPDATE_VERSION})

    on(broker, scenario)


def test_metrics_are_pushed_and_refused_when_they_are_too_many() -> None:
    async def scenario(cluster: Cluster) -> None:
        telemetry = Telemetry(cluster)
        found = await telemetry.get_telemetry_subscriptions()
        assert any(found.client_instance_id)
        assert (found.requested_metrics, found.telemetry_max_bytes) == ((), 100)
        await telemetry.push_telemetry(found, b"x" * 100, terminating=False)
        again = await telemetry.get_telemetry_subscriptions()
        assert again.client_instance_id != found.client_instance_id
        with pytest.raises(KafkaError) as refused:
            await telemetry.push_telemetry(again, b"x" * 101)
        assert refused.value.code is ErrorCode.TELEMETRY_TOO_LARGE

    with Broker(config={"barnabas.telemetry.receiver": "log", "telemetry.max.bytes": 100}) as receiving:
        on(receiving, scenario)


def test_a_node_that_takes_no_metrics_is_not_asked(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(UnsupportedByNodeError, match="asking for telemetry subscriptions needs"):
            await Telemetry(cluster).get_telemetry_subscriptions()

    on(broker, scenario)


def test_who_may_not_is_told_so() -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(KafkaError) as quorum:
            await Quorum(cluster).describe_quorum()
        with pytest.raises(KafkaError) as unregister:
            await Brokers(cluster).unregister_broker(9)
        results = await Features(cluster).update_features({"group.version": FeatureUpdate(1)})
        refused = [quorum.value, unregister.value, results["group.version"]]
        assert [error.code for error in refused if error] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 3

    with guarded_broker() as guarded:
        on(guarded, scenario)


# --- scripted nodes


@asynccontextmanager
async def scripted(answer: Callable[[Asked], Message], **versions: tuple[int, int]) -> AsyncIterator[Cluster]:
    """A node that serves these versions; `answer` has the answers to all but ApiVersions and Metadata."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            port = writer.get_extra_info("sockname")[1]
            if asked.name == "Metadata":
                metadata = one_broker(port)
                metadata.cluster_authorized_operations = 1 << AclOperation.ALTER
                response: Message = metadata
            elif asked.name == "ApiVersions":
                response = ranges(Metadata=(0, 10), **versions)
                levels = answer(asked)
                if isinstance(levels, ApiVersionsResponse):
                    response.finalized_features = levels.finalized_features
            else:
                response = answer(asked)
            writer.write(asked.answer(response))

    async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
        yield cluster


def no_answer(asked: Asked) -> Message:
    return ranges()


def test_a_broker_without_describe_cluster_is_asked_for_metadata() -> None:
    async def main() -> None:
        async with scripted(no_answer) as cluster:
            found = await Brokers(cluster).describe_cluster()
            assert (found.cluster_id, [node.id for node in found.nodes]) == ("scripted", [1])
            asked = await Brokers(cluster).describe_cluster(include_authorized_operations=True)
            assert asked.authorized_operations == frozenset({AclOperation.ALTER})
            assert not await Brokers(cluster).can_list_fenced_brokers()
            with pytest.raises(UnsupportedByNodeError, match=r"fenced brokers needs DescribeCluster.*2\.8"):
                await Brokers(cluster).describe_cluster(include_fenced_brokers=True)
            with pytest.raises(UnsupportedByNodeError, match="describing the quorum needs DescribeQuorum"):
                await Quorum(cluster).describe_quorum()
            with pytest.raises(UnsupportedByNodeError, match="adding a voter needs AddRaftVoter"):
                await Quorum(cluster).add_raft_voter(1, SOME_ID, [])

    asyncio.run(main())


def test_a_broker_that_knows_no_fenced_ones_says_which_version_does() -> None:
    async def main() -> None:
        async with scripted(no_answer, DescribeCluster=(0, 1)) as cluster:
            with pytest.raises(UnsupportedByNodeError, match="listing fenced brokers needs version 2"):
                await Brokers(cluster).describe_cluster(include_fenced_brokers=True)

    asyncio.run(main())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_read_in_every_version(version: int) -> None:
    def answer(asked: Asked) -> Message:
        if asked.name != "DescribeQuorum":
            return ranges()
        assert asked.version == version
        return quorum_of(7, has_nodes=version >= 2)

    async def main() -> None:
        async with scripted(answer, DescribeQuorum=(0, version)) as cluster:
            info = await Quorum(cluster).describe_quorum()
            (voter,) = info.voters
            assert (info.leader_id, info.leader_epoch, info.high_watermark, voter.log_end_offset) == (7, 3, 9, 10)
            assert voter.last_fetch_timestamp_ms == (None if version == 0 else 5000)
            assert voter.last_caught_up_timestamp_ms is None
            assert info.nodes == ({} if version < 2 else {7: (RaftEndpoint("CONTROLLER", "::1", 9093),)})

    asyncio.run(main())


def quorum_of(voter_id: int, *, has_nodes: bool = True) -> DescribeQuorumResponse:
    voter = DescribeQuorumResponse.ReplicaState(replica_id=voter_id, log_end_offset=10, last_fetch_timestamp=5000)
    row = DescribeQuorumResponse.PartitionData(leader_id=7, leader_epoch=3, high_watermark=9, current_voters=[voter])
    listener = DescribeQuorumResponse.Listener(name="CONTROLLER", host="::1", port=9093)
    return DescribeQuorumResponse(
        topics=[DescribeQuorumResponse.TopicData(topic_name="__cluster_metadata", partitions=[row])],
        nodes=[DescribeQuorumResponse.Node(node_id=7, listeners=[listener])] if has_nodes else [],
    )


def test_lowering_a_feature_needs_a_version_that_can_say_so() -> None:
    def answer(asked: Asked) -> Message:
        return UpdateFeaturesResponse() if asked.name == "UpdateFeatures" else ranges()

    async def main() -> None:
        async with scripted(answer, UpdateFeatures=(0, 0)) as cluster:
            assert await Features(cluster).update_features({"a": FeatureUpdate(1)}) == {"a": None}
            down = {"a": FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)}
            with pytest.raises(UnsupportedByNodeError, match="this feature update needs version 1"):
                await Features(cluster).update_features(down)

    asyncio.run(main())


@pytest.mark.parametrize("happened", [True, False])
def test_a_change_that_was_not_confirmed_is_looked_after(happened: bool) -> None:
    late: dict[str, Any] = {"error_code": int(ErrorCode.REQUEST_TIMED_OUT), "error_message": None}

    def answer(asked: Asked) -> Message:
        match asked.name:
            case "UnregisterBroker":
                return UnregisterBrokerResponse(**late)
            case "DescribeCluster":
                row = DescribeClusterResponse.DescribeClusterBroker(broker_id=4)
                return DescribeClusterResponse(brokers=[] if happened else [row])
            case "RemoveRaftVoter":
                return RemoveRaftVoterResponse(**late)
            case "DescribeQuorum":
                return quorum_of(7 if happened else 4)
            case "UpdateFeatures":
                return UpdateFeaturesResponse(**late)
        level = ApiVersionsResponse.FinalizedFeatureKey(name="a", max_version_level=2 if happened else 1)
        return ApiVersionsResponse(finalized_features=[level])

    async def main() -> None:
        versions = {"UnregisterBroker": (0, 0), "DescribeCluster": (0, 2), "RemoveRaftVoter": (0, 0)}
        async with scripted(answer, **versions, DescribeQuorum=(0, 2), UpdateFeatures=(0, 2)) as cluster:
            with pytest.raises(TimedOutError, match="unregistering broker 4 was not confirmed") as forgotten:
                await Brokers(cluster).unregister_broker(4)
            with pytest.raises(TimedOutError, match="removing voter 4") as removed:
                await Quorum(cluster).remove_raft_voter(4, Uuid(16))
            results = await Features(cluster).update_features({"a": FeatureUpdate(2)})
            raised = results["a"]
            assert isinstance(raised, TimedOutError)
            assert [each.happened for each in (forgotten.value, removed.value, raised)] == [happened] * 3

    asyncio.run(main())
