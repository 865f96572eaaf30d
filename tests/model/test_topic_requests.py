"""Random administrative requests to a node in memory: it answers, and then shows, what a plain dict says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.wire import Message
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.harness import MemoryNode
from tests.model.model import Configure, Create, Delete, Grow, Operation, Topics, configs_request, seen

BROKERS = 3
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Few names, so that requests meet; some that collide or are no names at all.
names = st.sampled_from(["a", "b", "c.d", "c_d", "e", "not a name", ".."])
configs = st.dictionaries(
    st.sampled_from(["retention.ms", "max.message.bytes", "cleanup.policy", "segment.jitter.ms", "no.such.setting"]),
    st.sampled_from(["0", "1000", "-1", "-7", "compact", "compact,delete", "soon"]),
    max_size=2,
)
creations = st.builds(
    Create,
    st.lists(st.tuples(names, st.sampled_from([0, 1, 2, 5, -3]), configs), min_size=1, max_size=3),
    replication_factor=st.sampled_from([1, 2, 3, 4, 0]),
    brokers=st.just(BROKERS),
    validate_only=st.booleans(),
)
changes = st.dictionaries(
    st.sampled_from(["retention.ms", "max.message.bytes", "cleanup.policy", "no.such.setting"]),
    st.sampled_from(["0", "1000", "-7", "compact", None]),
    max_size=3,
)
operations = st.one_of(
    creations,
    st.builds(Create, st.lists(st.tuples(names, st.integers(1, 4), st.just({})), min_size=1, max_size=2)),
    st.builds(Delete, st.lists(names, min_size=1, max_size=2)),
    st.builds(Grow, st.lists(st.tuples(names, st.integers(0, 8)), min_size=1, max_size=2), validate_only=st.booleans()),
    st.builds(Configure, st.lists(st.tuples(names, changes), min_size=1, max_size=2), validate_only=st.booleans()),
)


def show(node: MemoryNode) -> Topics:
    metadata = node.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 13)
    return seen(metadata, node.call(configs_request([topic.name for topic in metadata.topics]), 4)).topics


@BOUNDED
@given(st.lists(operations, max_size=12))
def test_a_node_answers_and_shows_what_the_model_says(sequence: list[Operation]) -> None:
    node, topics = MemoryNode(brokers=BROKERS), {}  # type: tuple[MemoryNode, Topics]
    for operation in sequence:
        before = len(node.written)
        after, expected = operation.apply(topics)
        assert operation.codes(node.call(operation.request(), operation.version)) == expected, operation
        assert (len(node.written) > before) >= (after != topics), "a change without a record"
        topics = after
        assert show(node) == topics, operation


# ---- what a node shows follows from its log


def without_provenance(image: MetadataImage) -> MetadataImage:
    return replace(image, provenance=Provenance())


def through_bytes(records: Sequence[tuple[Message, int]]) -> list[Message]:
    return [wire.decode_record(wire.encode_record(record, version)).record for record, version in records]


def batches(records: Sequence[Message], base_offset: int, sizes: Sequence[int]) -> list[MetadataBatch]:
    """The records cut into batches of these sizes, over and over."""
    found: list[MetadataBatch] = []
    position = 0
    while position < len(records):
        part = records[position : position + sizes[len(found) % len(sizes)]]
        first = base_offset + position
        found.append(MetadataBatch(first, first + len(part) - 1, 1, 7, part))
        position += len(part)
    return found


@BOUNDED
@given(st.lists(operations, max_size=10), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 9))
def test_the_log_and_a_snapshot_with_the_rest_of_the_log_give_the_live_image(
    sequence: list[Operation], sizes: list[int], snapshot_after: int
) -> None:
    node = MemoryNode(brokers=BROKERS)
    start = node.image
    at_snapshot, written_at_snapshot = start, 0
    for index, operation in enumerate(sequence):
        node.call(operation.request(), operation.version)
        if index == snapshot_after:
            at_snapshot, written_at_snapshot = node.image, len(node.written)

    replayed = MetadataLoader(start)
    replayed.load(batches(node.written, start.offset + 1, sizes))
    assert without_provenance(replayed.image) == without_provenance(node.image)
    assert replayed.image.offset == node.image.offset

    records = through_bytes(list(to_records(at_snapshot)))
    assert from_records(records, at_snapshot.provenance) == at_snapshot
    restored = MetadataLoader(EMPTY_IMAGE)
    restored.load_snapshot(records, at_snapshot.provenance)
    restored.load(batches(node.written[written_at_snapshot:], at_snapshot.offset + 1, sizes))
    assert without_provenance(restored.image) == without_provenance(node.image)
