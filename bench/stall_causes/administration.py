"""Requests that create, change, show and delete very many things that exist."""

from __future__ import annotations

from collections.abc import Iterator

from tools.apache_kafka import Node

from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from bench.connection import frame
from bench.stall_causes import cause
from bench.stall_causes.preparing import MANY, TIMEOUT_MS, ask, asking, create_spread, create_topics, spread
from bench.stall_causes.rows import ACLS, TOPIC_TYPE

PARTITIONS = 9_000  # one request may write 10,000 records
TOPICS = 1_000


def _topics() -> list[str]:
    return [f"topic-{number}" for number in range(TOPICS)]


@cause(f"CreateTopics and DeleteTopics of a topic of {PARTITIONS:,} partitions")
def create_and_delete(node: Node) -> Iterator[None]:
    topic = CreateTopicsRequest.CreatableTopic(name="large", num_partitions=PARTITIONS, replication_factor=1)
    create = frame(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 7)
    state = DeleteTopicsRequest.DeleteTopicState(name="large")
    delete = frame(DeleteTopicsRequest(topics=[state], timeout_ms=TIMEOUT_MS), 6)
    with asking(node) as client:
        yield
        ask(client, create)
        ask(client, delete)


@cause(f"CreatePartitions of {MANY:,} partitions")
def more_partitions(node: Node) -> Iterator[None]:
    state = DeleteTopicsRequest.DeleteTopicState(name="growing")
    row = CreatePartitionsRequest.CreatePartitionsTopic(name="growing", count=1 + MANY, assignments=None)
    with asking(node) as client:
        client.call(DeleteTopicsRequest(topics=[state], timeout_ms=TIMEOUT_MS), 6)
        create_topics(node, ["growing"], 1)
        request = frame(CreatePartitionsRequest(topics=[row], timeout_ms=TIMEOUT_MS), 3)
        yield
        ask(client, request)


@cause(f"DescribeConfigs and IncrementalAlterConfigs of {TOPICS:,} topics")
def configs(node: Node) -> Iterator[None]:
    create_topics(node, _topics(), 1)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    describe = DescribeConfigsRequest(
        resources=[resource(resource_type=TOPIC_TYPE, resource_name=each) for each in _topics()],
        include_synonyms=True,
        include_documentation=True,
    )
    changed = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=0, value="12345")
    alter = IncrementalAlterConfigsRequest(
        resources=[changed(resource_type=TOPIC_TYPE, resource_name=each, configs=[config]) for each in _topics()]
    )
    requests = frame(describe, 4), frame(alter, 1)
    with asking(node) as client:
        yield
        for request in requests:
            ask(client, request)


@cause(f"Metadata, DescribeTopicPartitions and DescribeLogDirs of all {MANY:,} partitions")
def everything(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    row = DescribeTopicPartitionsRequest.TopicRequest
    requests = (
        frame(MetadataRequest(topics=None), 12),
        frame(DescribeTopicPartitionsRequest(topics=[row(name=each) for each in topics]), 0),
        frame(DescribeLogDirsRequest(topics=None), 4),
    )
    with asking(node) as client:
        yield
        for request in requests:
            ask(client, request)


@cause(f"CreateAcls and DescribeAcls of {MANY:,} ACLs", ACLS)
def acls(node: Node) -> Iterator[None]:
    row = CreateAclsRequest.AclCreation
    create = CreateAclsRequest(
        creations=[
            row(
                resource_type=TOPIC_TYPE,
                resource_name=f"topic-{number}",
                resource_pattern_type=3,
                principal="User:a",
                host="*",
                operation=3,
                permission_type=3,
            )
            for number in range(MANY)
        ]
    )
    describe = DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
    requests = frame(create, 3), frame(describe, 3)
    with asking(node) as client:
        yield
        for request in requests:
            ask(client, request)
