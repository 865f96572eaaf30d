"""controller_mutation_rate in CreateTopics, CreatePartitions and DeleteTopics (KIP-599)."""

from __future__ import annotations

from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.records.metadata import ClientQuotaRecord
from tests.broker.harness import MemoryNode

THROTTLED = 89


def node(rate: float) -> MemoryNode:
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    return MemoryNode(records=[ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=rate)])


def create(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def test_a_client_above_its_rate_is_told_how_long_to_wait_and_succeeds_after_that() -> None:
    memory = node(rate=1)
    assert memory.call(create("a", 13), 7).topics[0].error_code == 0  # the bucket holds 11, and may be overdrawn
    refused = memory.call(create("b", 1), 7)
    assert (refused.topics[0].error_code, refused.throttle_time_ms) == (THROTTLED, 2000)
    memory.now_ms += 2000
    accepted = memory.call(create("b", 1), 7)
    assert (accepted.topics[0].error_code, accepted.throttle_time_ms) == (0, 0)


def test_a_client_that_cannot_be_told_is_never_refused_but_waits_for_its_answer() -> None:
    memory = node(rate=100)
    for name, waited_ms in (("a", 100), ("b", 110)):
        response = memory.call(create(name, 1110 if name == "a" else 1), 5)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, waited_ms)


def test_more_partitions_and_deleted_topics_count_as_well() -> None:
    memory = node(rate=1)
    memory.call(create("a", 12), 7)
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=13, assignments=None)
    partitions = memory.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)
    assert [row.error_code for row in partitions.results] == [THROTTLED]
    state = DeleteTopicsRequest.DeleteTopicState(name="a")
    deleted = memory.call(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6)
    assert [row.error_code for row in deleted.responses] == [THROTTLED]
    assert memory.image.topics.names == ("a",)


def test_without_a_quota_nobody_waits() -> None:
    memory = MemoryNode()
    for index in range(5):
        response = memory.call(create(f"t{index}", 50), 7)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
