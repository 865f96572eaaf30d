"""Fetch, ListOffsets and their like, over very many partitions or bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tools.apache_kafka import Node

from barnabas import wire
from barnabas.batches import Record, build_batch
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from bench.connection import frame
from bench.stall_causes import Load, cause
from bench.stall_causes.preparing import (
    BASE_TIMESTAMP,
    MANY,
    ask,
    asking,
    create_spread,
    create_topics,
    produce,
    restart,
    spread,
)

FETCH_VERSION, OFFSETS_VERSION, EPOCH_VERSION, DELETE_VERSION = 12, 7, 4, 2
ROWS = 500_000
LATEST = -1
LARGE_BATCHES = 100  # of half a megabyte

Topics = Mapping[str, range]


def fetch(
    topics: Topics, session_id: int = 0, epoch: int = -1, forget: Topics | None = None, wait_ms: int = 0
) -> bytes:
    row = FetchRequest.FetchPartition
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1 << 20 if wait_ms else 0,
        max_bytes=100 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic=name, partitions=[row(partition=each, partition_max_bytes=100 << 20) for each in partitions]
            )
            for name, partitions in topics.items()
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=name, partitions=list(partitions))
            for name, partitions in (forget or {}).items()
        ],
    )
    return frame(request, FETCH_VERSION)


def list_offsets(topics: Topics, timestamp: int = LATEST) -> bytes:
    row = ListOffsetsRequest.ListOffsetsPartition
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=name, partitions=[row(partition_index=each, timestamp=timestamp) for each in partitions]
            )
            for name, partitions in topics.items()
        ],
    )
    return frame(request, OFFSETS_VERSION)


def offsets_of_epochs(topics: Topics) -> bytes:
    row = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic=name, partitions=[row(partition=each, leader_epoch=0) for each in partitions]
            )
            for name, partitions in topics.items()
        ],
    )
    return frame(request, EPOCH_VERSION)


def delete_records(topics: Topics) -> bytes:
    row = DeleteRecordsRequest.DeleteRecordsPartition
    request = DeleteRecordsRequest(
        timeout_ms=60_000,
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=name, partitions=[row(partition_index=each, offset=-1) for each in partitions]
            )
            for name, partitions in topics.items()
        ],
    )
    return frame(request, DELETE_VERSION)


def _many(node: Node) -> Topics:
    """Partitions with one record each."""
    topics = spread(MANY)
    create_spread(node, topics)
    with asking(node) as client:
        ask(client, produce(topics))
    return topics


# --- one request, by what it asks for

MAKERS: dict[str, Callable[[Topics], bytes]] = {
    "ListOffsets": list_offsets,
    "ListOffsets by timestamp": partial(list_offsets, timestamp=500),
    "Fetch": fetch,
    "Produce": produce,
    "OffsetForLeaderEpoch": offsets_of_epochs,
    "DeleteRecords": delete_records,
}


def _of_known(make: Callable[[Topics], bytes], *, is_first: bool) -> Load:
    """Partitions with one record each; `is_first`: their logs were not used since the start."""

    def load(node: Node) -> Iterator[None]:
        request = make(_many(node))
        if is_first:
            restart(node)
        with asking(node) as client:
            yield
            ask(client, request)

    load.__module__ = __name__
    return load


def _of_unknown(make: Callable[[Topics], bytes]) -> Load:
    def load(node: Node) -> Iterator[None]:
        create_topics(node, ["few"], 1)
        request = make({"few": range(ROWS)})
        with asking(node) as client:
            yield
            ask(client, request)

    load.__module__ = __name__
    return load


for _name in ("ListOffsets", "Fetch", "Produce"):
    cause(f"{_name} of {MANY:,} partitions whose logs were not used since the start")(
        _of_known(MAKERS[_name], is_first=True)
    )
for _name in ("ListOffsets by timestamp", "OffsetForLeaderEpoch", "DeleteRecords"):
    cause(f"{_name} of {MANY:,} partitions")(_of_known(MAKERS[_name], is_first=False))
for _name in ("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords"):
    cause(f"{_name} of {ROWS:,} partitions that do not exist")(_of_unknown(MAKERS[_name]))


# --- sessions


@cause(f"a fetch session of {MANY:,} partitions: full, all changed, all forgotten, closed")
def sessions(node: Node) -> Iterator[None]:
    topics = _many(node)
    with asking(node) as client:
        yield
        session_id = wire.decode(FetchResponse, FETCH_VERSION, ask(client, fetch(topics, epoch=0))[5:]).session_id
        ask(client, fetch(topics, session_id, 1))
        ask(client, fetch({}, session_id, 2))
        ask(client, fetch({}, session_id, 3, forget=dict(list(topics.items())[1:])))
        ask(client, fetch({}, session_id, -1))


@cause(f"a Fetch of {MANY:,} partitions that waits while records arrive")
def waiting(node: Node) -> Iterator[None]:
    topics = {name: range(100, 200) for name in spread(MANY, "waiting")}
    create_topics(node, topics, 200)
    with asking(node) as client, asking(node) as producer:
        request = fetch(topics, wait_ms=2_000)
        one = produce({"waiting-0": [100]})
        yield
        asked = threading.Thread(target=ask, args=(client, request))
        asked.start()
        while asked.is_alive():
            ask(producer, one)
        asked.join()


# --- large answers


@cause("Fetch of 50 MB, five times")
def large_fetch(node: Node) -> Iterator[None]:
    create_topics(node, ["large"], 1)
    batch = build_batch(Record(0, BASE_TIMESTAMP, None, b"x" * 1000) for _ in range(500))
    request = produce({"large": [0]}, batch)
    with asking(node) as client:
        for _ in range(LARGE_BATCHES):
            ask(client, request)
        asked = fetch({"large": range(1)})
        yield
        for _ in range(5):
            ask(client, asked)
