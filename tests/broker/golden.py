"""Requests that a cluster of Apache Kafka 4.3.1 was sent, its answers, and its state when it gave them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS, ApiKey, Message
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
    def expected(self) -> bytes:
        return bytes.fromhex(self.response_hex)

    @property
    def request(self) -> Any:
        api = APIS[ApiKey[_snake(self.api)]]
        frame = bytes.fromhex(self.request_hex)
        client_id = int.from_bytes(frame[8:10])
        at = 10 + client_id + (api.request_header_version(self.version) == 2)
        return wire.decode(api.request, self.version, frame[at:])

    def response(self, answer: bytes) -> Any:
        """The message in an answer."""
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


FINAL_OFFSET = golden.expected()["metadata_offset_before"]
