"""What a cluster should hold, as a plain dict: requests about topics, what they change and which codes they earn.

The one rule: it is simple enough to be read as the specification. Replicas, epochs and messages are not modelled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataResponse

TOPIC_RESOURCE = 2
DYNAMIC_TOPIC_CONFIG = 1
SET, DELETE = 0, 1
LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class Topic(NamedTuple):
    partitions: int
    configs: frozenset[tuple[str, str]] = frozenset()


Topics = Mapping[str, Topic]
Codes = Mapping[str, int]


@dataclass(frozen=True)
class Create:
    """CreateTopics; a topic's replicas are `replication_factor` of `brokers`."""

    topics: Sequence[tuple[str, int, Mapping[str, str]]]
    replication_factor: int = 1
    brokers: int = 1
    validate_only: bool = False

    version = 7

    def request(self) -> Message:
        rows = [
            CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=self.replication_factor,
                configs=[CreateTopicsRequest.CreatableTopicConfig(name=n, value=v) for n, v in configs.items()],
            )
            for name, partitions, configs in self.topics
        ]
        return CreateTopicsRequest(topics=rows, timeout_ms=30_000, validate_only=self.validate_only)

    def codes(self, response: Any) -> Codes:
        return {row.name: row.error_code for row in response.topics}

    def apply(self, topics: Topics) -> tuple[Topics, Codes]:
        after, codes = dict(topics), {}
        twice = repeated(name for name, _, _ in self.topics)
        for name, partitions, configs in self.topics:
            # Topics of one request are not compared with each other, only with those before it.
            codes[name] = ErrorCode.INVALID_REQUEST if name in twice else self._code(topics, name, partitions, configs)
            if codes[name] == 0:
                after[name] = Topic(partitions, frozenset(configs.items()))
        return (topics if self.validate_only else after), codes

    def _code(self, before: Topics, name: str, partitions: int, configs: Mapping[str, str]) -> int:
        if not LEGAL_NAME.fullmatch(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if name in before:
            return ErrorCode.TOPIC_ALREADY_EXISTS
        if any(name.replace(".", "_") == other.replace(".", "_") for other in before):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not all(map(is_legal, configs, configs.values())):
            return ErrorCode.INVALID_CONFIG
        if self.replication_factor <= 0:
            return ErrorCode.INVALID_REPLICATION_FACTOR
        if partitions <= 0:
            return ErrorCode.INVALID_PARTITIONS
        return 0 if self.replication_factor <= self.brokers else ErrorCode.INVALID_REPLICATION_FACTOR


@dataclass(frozen=True)
class Delete:
    names: Sequence[str]

    version = 6

    def request(self) -> Message:
        rows = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in self.names]
        return DeleteTopicsRequest(topics=rows, timeout_ms=30_000)

    def codes(self, response: Any) -> Codes:
        return {row.name: row.error_code for row in response.responses}

    def apply(self, topics: Topics) -> tuple[Topics, Codes]:
        twice = repeated(self.names)
        codes = {
            name: ErrorCode.INVALID_REQUEST
            if name in twice
            else 0
            if name in topics
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for name in self.names
        }
        return {name: topic for name, topic in topics.items() if codes.get(name, -1) != 0}, codes


@dataclass(frozen=True)
class Grow:
    """CreatePartitions."""

    counts: Sequence[tuple[str, int]]
    validate_only: bool = False

    version = 3

    def request(self) -> Message:
        rows = [
            CreatePartitionsRequest.CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in self.counts
        ]
        return CreatePartitionsRequest(topics=rows, timeout_ms=30_000, validate_only=self.validate_only)

    def codes(self, response: Any) -> Codes:
        return {row.name: row.error_code for row in response.results}

    def apply(self, topics: Topics) -> tuple[Topics, Codes]:
        after, codes = dict(topics), {}
        twice = repeated(name for name, _ in self.counts)
        for name, count in self.counts:
            if name in twice:
                codes[name] = ErrorCode.INVALID_REQUEST
            elif name not in topics:
                codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif count <= topics[name].partitions:
                codes[name] = ErrorCode.INVALID_PARTITIONS
            else:
                codes[name] = ErrorCode.NONE
                after[name] = topics[name]._replace(partitions=count)
        return (topics if self.validate_only else after), codes


@dataclass(frozen=True)
class Configure:
    """IncrementalAlterConfigs of topics; a value of None deletes."""

    changes: Sequence[tuple[str, Mapping[str, str | None]]]
    validate_only: bool = False

    version = 1

    def request(self) -> Message:
        changed = IncrementalAlterConfigsRequest.AlterableConfig
        rows = [
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name=name,
                configs=[
                    changed(name=key, config_operation=DELETE if value is None else SET, value=value)
                    for key, value in change.items()
                ],
            )
            for name, change in self.changes
        ]
        return IncrementalAlterConfigsRequest(resources=rows, validate_only=self.validate_only)

    def codes(self, response: Any) -> Codes:
        return {row.resource_name: row.error_code for row in response.responses}

    def apply(self, topics: Topics) -> tuple[Topics, Codes]:
        after, codes = dict(topics), {}
        twice = repeated(name for name, _ in self.changes)
        for name, change in self.changes:
            if name in twice:
                codes[name] = ErrorCode.INVALID_REQUEST
            elif not LEGAL_NAME.fullmatch(name):
                codes[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif not all(is_legal(key, value) for key, value in change.items() if value is not None):
                codes[name] = ErrorCode.INVALID_CONFIG
            elif name not in topics:
                codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                codes[name] = ErrorCode.NONE
                merged: dict[str, str | None] = {**dict(topics[name].configs), **change}
                kept = frozenset((key, value) for key, value in merged.items() if value is not None)
                after[name] = topics[name]._replace(configs=kept)
        return (topics if self.validate_only else after), codes


Operation = Create | Delete | Grow | Configure


def repeated(names: Any) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


LEGAL_VALUES: Mapping[str, Callable[[str], bool]] = {
    "retention.ms": lambda value: re.fullmatch(r"-?\d+", value) is not None and int(value) >= -1,
    "max.message.bytes": lambda value: value.isdecimal(),
    "cleanup.policy": lambda value: value in ("delete", "compact", "compact,delete"),
    "segment.jitter.ms": lambda value: value.isdecimal(),
}


def is_legal(name: str, value: str) -> bool:
    return name in LEGAL_VALUES and LEGAL_VALUES[name](value)


# ---- what a node shows


@dataclass
class Seen:
    """Topics as Metadata and DescribeConfigs show them; all that a node shows must be whole."""

    topics: dict[str, Topic] = field(default_factory=dict)
    ids: dict[str, Any] = field(default_factory=dict)


def configs_request(names: Sequence[str]) -> DescribeConfigsRequest:
    row = DescribeConfigsRequest.DescribeConfigsResource
    rows = [row(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in names]
    return DescribeConfigsRequest(resources=rows)


def seen(metadata: MetadataResponse, configs: DescribeConfigsResponse) -> Seen:
    found = Seen()
    set_on = {}
    for result in configs.results:
        assert result.error_code == 0, result
        own = (entry for entry in result.configs if entry.config_source == DYNAMIC_TOPIC_CONFIG)
        set_on[result.resource_name] = frozenset((entry.name, str(entry.value)) for entry in own)
    for topic in metadata.topics:
        assert topic.error_code == 0, topic
        assert topic.name is not None
        indexes = [partition.partition_index for partition in topic.partitions]
        assert sorted(indexes) == list(range(len(indexes))), f"{topic.name} has holes: {indexes}"
        assert all(p.error_code == 0 and p.leader_id in p.isr_nodes for p in topic.partitions), topic
        found.topics[topic.name] = Topic(len(indexes), set_on[topic.name])
        found.ids[topic.name] = topic.topic_id
    return found
