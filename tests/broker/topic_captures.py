"""What Apache Kafka 4.3.1 answered to requests about topics and the cluster, and nodes in the state it was in."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.topics import UNASSIGNED_DIR
from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS, ApiKey, Message, Uuid
from barnabas.wire.records.metadata import AccessControlEntryRecord, PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode
from tests.metadata import golden

DATA = Path(__file__).parent / "data"
PROPERTIES = {
    "num.partitions": "2",
    "default.replication.factor": "2",
    "log.index.size.max.bytes": "4096",
    "log.index.interval.bytes": "512",
}
AUTHORIZER = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS", "User:admin"}))
ALICE = KafkaPrincipal("User", "alice")


class Capture(NamedTuple):
    api: str
    version: int
    case: str
    phase: str
    node: int
    listener: str
    stability: str
    request_hex: str
    response_hex: str

    def __str__(self) -> str:
        return f"v{self.version} {self.case}"

    @property
    def answer(self) -> bytes:
        """Header and body of Kafka's answer."""
        return bytes.fromhex(self.response_hex)

    @property
    def response(self) -> Any:
        return self.decode(self.answer)

    def decode(self, answer: bytes) -> Any:
        api = APIS[ApiKey[_snake(self.api)]]
        return wire.decode(api.response, self.version, answer[4 + api.response_header_version(self.version) :])

    def ask(self, node: MemoryNode) -> bytes:
        principal = ALICE if self.case.startswith("alice") else ANONYMOUS
        answer = node.answer(bytes.fromhex(self.request_hex), listener=self.listener, principal=principal)
        assert answer is not None
        return answer


def _snake(api: str) -> str:
    return "".join(f"_{c}" if c.isupper() and n else c.upper() for n, c in enumerate(api))


def captures(api: str) -> Iterator[Capture]:
    with gzip.open(DATA / f"{api}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield Capture(api, **json.loads(line))


def params(api: str) -> list[Any]:
    return [pytest.param(capture, id=str(capture)) for capture in captures(api)]


@cache
def image_before(offset: int) -> MetadataImage:
    """What the cluster's log says before this offset."""
    image = EMPTY_IMAGE
    for batch in golden.log():
        records = batch.records[: max(offset - batch.base_offset, 0)]
        if records:
            last = batch.base_offset + len(records) - 1
            image = replay(image, records, Provenance(last, batch.epoch, batch.append_timestamp_ms))
    return image


def node_before(
    offset: int, records: Sequence[Message] = (), properties: Mapping[str, str] | None = None
) -> MemoryNode:
    """A node in that state, with more records applied to it."""
    image = image_before(offset)
    if records:
        provenance = image.provenance._replace(last_contained_offset=image.offset + len(records))
        image = replay(image, records, provenance)
    return MemoryNode({**PROPERTIES, **(properties or {})}, image=image, authorizer=AUTHORIZER)


def final_node() -> MemoryNode:
    """The state in which the captures of phase 5-final were taken."""
    return node_before(golden.expected()["metadata_offset_before"] + 1)


def topic(name: str, topic_id: Uuid, *partitions: list[int]) -> list[Message]:
    """The records of a topic with these replicas, all of them in sync."""
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    for index, replicas in enumerate(partitions):
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[UNASSIGNED_DIR] * len(replicas),
            )
        )
    return records


def allow(principal: str, operation: AclOperation, resource_type: ResourceType, name: str) -> AccessControlEntryRecord:
    """An access control entry; what it is about is also its id."""
    text = f"{principal} {operation} {resource_type} {name}"
    return AccessControlEntryRecord(
        id=Uuid(hashlib.md5(text.encode(), usedforsecurity=False).digest()),
        resource_type=resource_type,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )
