"""What Apache Kafka 4.3.1 answered to requests about leaders, reassignments and brokers, and nodes in the state it was in."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS
from tests.broker.harness import MemoryNode
from tests.metadata import golden

AUTHORIZER = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
NOT_ALLOWED = "alice, not allowed"


class Capture(NamedTuple):
    version: int
    case: str
    request: bytes
    response: bytes

    def __str__(self) -> str:
        return f"v{self.version} {self.case}"

    def ask(self, node: MemoryNode) -> bytes:
        principal = KafkaPrincipal("User", "alice") if self.case == NOT_ALLOWED else ANONYMOUS
        answer = node.answer(self.request, principal=principal)
        assert answer is not None
        return answer

    def decode(self, answer: bytes) -> Any:
        api = APIS[int.from_bytes(self.request[:2])]
        return wire.decode(api.response, self.version, answer[4 + api.response_header_version(self.version) :])


def captures(api: str) -> list[Capture]:
    with gzip.open(Path(__file__).parent / "data" / f"{api}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Capture(row["version"], row["case"], bytes.fromhex(row["request_hex"]), bytes.fromhex(row["response_hex"]))
        for row in rows
    ]


@cache
def _image_before(offset: int) -> MetadataImage:
    image = EMPTY_IMAGE
    for batch in golden.log():
        records = batch.records[: max(offset - batch.base_offset, 0)]
        if records:
            last = batch.base_offset + len(records) - 1
            image = replay(image, records, Provenance(last, batch.epoch, batch.append_timestamp_ms))
    return image


def node_before(offset: int) -> MemoryNode:
    """A node in the state that the cluster's log gives before this offset."""
    return MemoryNode(image=_image_before(offset), authorizer=AUTHORIZER)
