"""One request with very many rows, for each API whose request or response has them: a table of requests.

Most rows name things that do not exist: what is measured is that the node reads, checks and answers them without making
others wait. `administration` and `groups` have requests that change things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tools.apache_kafka import Node

from barnabas.wire import Message, Uuid
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from bench.connection import frame
from bench.stall_causes import cause
from bench.stall_causes.preparing import TIMEOUT_MS, ask, asking, create_topics, settled_coordinators

ROWS = 100_000
FEW = 10_000  # of rows that cost more, or of which more are refused as a whole
TOPIC = "few"  # has one partition
TOPIC_TYPE = 2


class Case(NamedTuple):
    """A request with so many rows."""

    version: int
    request: Callable[[int], Message]
    rows: int = ROWS


def _names(count: int) -> list[str]:
    return [f"name-{number}" for number in range(count)]


CASES = {
    "Metadata": Case(
        12, lambda n: MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=each) for each in _names(n)])
    ),
    "DescribeTopicPartitions": Case(
        0,
        lambda n: DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=each) for each in _names(n)]
        ),
    ),
    "FindCoordinator": Case(4, lambda n: FindCoordinatorRequest(key_type=0, coordinator_keys=_names(n)), FEW),
    "DescribeGroups": Case(5, lambda n: DescribeGroupsRequest(groups=_names(n))),
    "ConsumerGroupDescribe": Case(1, lambda n: ConsumerGroupDescribeRequest(group_ids=_names(n))),
    "DeleteGroups": Case(2, lambda n: DeleteGroupsRequest(groups_names=_names(n))),
    "LeaveGroup": Case(
        5,
        lambda n: LeaveGroupRequest(
            group_id="absent", members=[LeaveGroupRequest.MemberIdentity(member_id=each) for each in _names(n)]
        ),
    ),
    "OffsetCommit": Case(
        8,
        lambda n: OffsetCommitRequest(
            group_id="committing",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=each) for each in range(n)
                    ],
                )
            ],
        ),
    ),
    "OffsetFetch": Case(
        8,
        lambda n: OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id="absent",
                    topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(n)))],
                )
            ]
        ),
    ),
    "OffsetDelete": Case(
        0,
        lambda n: OffsetDeleteRequest(
            group_id="absent",
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=each) for each in range(n)
                    ],
                )
            ],
        ),
    ),
    "TxnOffsetCommit": Case(
        3,
        lambda n: TxnOffsetCommitRequest(
            transactional_id="absent",
            group_id="committing",
            producer_id=1,
            producer_epoch=0,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=each)
                        for each in range(n)
                    ],
                )
            ],
        ),
    ),
    "AddPartitionsToTxn": Case(
        3,
        lambda n: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="absent",
            v3_and_below_producer_id=1,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(n)))
            ],
        ),
    ),
    "DescribeTransactions": Case(0, lambda n: DescribeTransactionsRequest(transactional_ids=_names(n))),
    "DescribeProducers": Case(
        0,
        lambda n: DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=list(range(n)))]
        ),
    ),
    "DescribeLogDirs": Case(
        4,
        lambda n: DescribeLogDirsRequest(
            topics=[DescribeLogDirsRequest.DescribableLogDirTopic(topic=TOPIC, partitions=list(range(n)))]
        ),
    ),
    "AlterReplicaLogDirs": Case(
        2,
        lambda n: AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path="/nowhere",
                    topics=[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=TOPIC, partitions=list(range(n)))],
                )
            ]
        ),
    ),
    "DescribeConfigs": Case(
        4,
        lambda n: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC_TYPE, resource_name=each)
                for each in _names(n)
            ]
        ),
    ),
    "AlterConfigs": Case(
        2,
        lambda n: AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC_TYPE, resource_name=each)
                for each in _names(n)
            ]
        ),
        FEW,
    ),
    "IncrementalAlterConfigs": Case(
        1,
        lambda n: IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC_TYPE, resource_name=each)
                for each in _names(n)
            ]
        ),
        FEW,
    ),
    "CreatePartitions": Case(
        3,
        lambda n: CreatePartitionsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(name=each, count=2, assignments=None)
                for each in _names(n)
            ],
        ),
        FEW,
    ),
    "DeleteTopics": Case(
        6,
        lambda n: DeleteTopicsRequest(
            timeout_ms=TIMEOUT_MS, topics=[DeleteTopicsRequest.DeleteTopicState(name=each) for each in _names(n)]
        ),
        FEW,
    ),
    "ElectLeaders": Case(
        2,
        lambda n: ElectLeadersRequest(
            timeout_ms=TIMEOUT_MS,
            topic_partitions=[ElectLeadersRequest.TopicPartitions(topic=TOPIC, partitions=list(range(n)))],
        ),
        FEW,
    ),
    "AlterPartitionReassignments": Case(
        0,
        lambda n: AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    name=TOPIC,
                    partitions=[
                        AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=each, replicas=[1])
                        for each in range(n)
                    ],
                )
            ],
        ),
        FEW,
    ),
    "ListPartitionReassignments": Case(
        0,
        lambda n: ListPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[
                ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                    name=TOPIC, partition_indexes=list(range(n))
                )
            ],
        ),
    ),
    "AlterClientQuotas": Case(
        1,
        lambda n: AlterClientQuotasRequest(
            validate_only=True,
            entries=[
                AlterClientQuotasRequest.EntryData(
                    entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name=each)],
                    ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1000.0)],
                )
                for each in _names(n)
            ],
        ),
        FEW,
    ),
    "DescribeUserScramCredentials": Case(
        0,
        lambda n: DescribeUserScramCredentialsRequest(
            users=[DescribeUserScramCredentialsRequest.UserName(name=each) for each in _names(n)]
        ),
    ),
    "AlterUserScramCredentials": Case(
        0,
        lambda n: AlterUserScramCredentialsRequest(
            deletions=[
                AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=each, mechanism=1) for each in _names(n)
            ]
        ),
        FEW,
    ),
    "DeleteAcls": Case(
        3,
        lambda n: DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=TOPIC_TYPE,
                    resource_name_filter=each,
                    pattern_type_filter=3,
                    operation=1,
                    permission_type=1,
                )
                for each in _names(n)
            ]
        ),
        FEW,
    ),
}

_SHARE_STATE: list[tuple[str, type[Any], type[Any], type[Any]]] = [
    (
        "InitializeShareGroupState",
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateRequest.InitializeStateData,
        InitializeShareGroupStateRequest.PartitionData,
    ),
    (
        "ReadShareGroupState",
        ReadShareGroupStateRequest,
        ReadShareGroupStateRequest.ReadStateData,
        ReadShareGroupStateRequest.PartitionData,
    ),
    (
        "WriteShareGroupState",
        WriteShareGroupStateRequest,
        WriteShareGroupStateRequest.WriteStateData,
        WriteShareGroupStateRequest.PartitionData,
    ),
    (
        "DeleteShareGroupState",
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateRequest.DeleteStateData,
        DeleteShareGroupStateRequest.PartitionData,
    ),
    (
        "ReadShareGroupStateSummary",
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
        ReadShareGroupStateSummaryRequest.PartitionData,
    ),
]


def _share_state(request: type[Any], topic: type[Any], partition: type[Any]) -> Case:
    topic_id = Uuid(bytes([7]) * 16)
    return Case(
        0,
        lambda n: request(
            group_id="absent",
            topics=[topic(topic_id=topic_id, partitions=[partition(partition=each) for each in range(n)])],
        ),
        FEW,
    )


CASES |= {name: _share_state(*types) for name, *types in _SHARE_STATE}
CASES["StreamsGroupDescribe"] = Case(0, lambda n: StreamsGroupDescribeRequest(group_ids=_names(n)))
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def _load(case: Case) -> Callable[[Node], Iterator[None]]:
    def load(node: Node) -> Iterator[None]:
        create_topics(node, [TOPIC], 1)
        settled_coordinators(node)
        asked = frame(case.request(case.rows), case.version)
        with asking(node) as client:
            yield
            ask(client, asked)

    load.__module__ = __name__
    return load


for _name, _case in CASES.items():
    cause(f"{_name} of {_case.rows:,} rows", ACLS if _name == "DeleteAcls" else None)(_load(_case))
