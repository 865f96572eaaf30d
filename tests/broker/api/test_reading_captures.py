"""What Apache Kafka 4.3.1 answered to those who read its logs, compared with answers over the same directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import end_of_whole_batches
from barnabas.batches.format import MAX_INT64
from barnabas.storage import LOG_START_OFFSET_CHECKPOINT
from barnabas.wire import Uuid
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import AUTHORIZER, PROPERTIES, Capture, captures, image_before, params
from tests.metadata import golden as metadata
from tests.storage import golden as storage

DIRECTORY_IDS = {"d0": Uuid.parse("AAAAAAAAAAEAAAAAAAAAQQ"), "d1": Uuid.parse("tyCIgXHBFcoB6B1oeZx_PA")}
# While clients read, and before the brokers were stopped for the first time: all leaders were in epoch 0.
OFFSET_OF_3B = 2000
SESSION_CASES = ("full session", "incremental", "bad session epoch", "close the session")
# Kafka cuts the last batch where its limit falls, and clients drop the rest of it; ours are whole.
CUT = "one partition at a limit"


def node_over(node_dir: Path, offset: int) -> MemoryNode:
    """Node 1 of the cluster, over the directories that Kafka left, with the metadata before an offset."""
    ids = {node_dir / name: directory_id for name, directory_id in DIRECTORY_IDS.items()}
    properties = {**PROPERTIES, "node.id": "1", "log.dirs": ",".join(map(str, ids))}
    return MemoryNode(properties, image=image_before(offset), authorizer=AUTHORIZER, directory_ids=ids)


@pytest.fixture(scope="module")
def final_node(tmp_path_factory: pytest.TempPathFactory) -> MemoryNode:
    node_dir = storage.extract_node(tmp_path_factory.mktemp("final"))
    return node_over(node_dir, metadata.expected()["metadata_offset_before"] + 1)


@pytest.fixture(scope="module")
def node_of_3b(tmp_path_factory: pytest.TempPathFactory) -> MemoryNode:
    """Of the logs that are asked for then, only epochs and the start have changed later."""
    node_dir = storage.extract_node(tmp_path_factory.mktemp("3b"))
    for path in node_dir.glob("*/d-*/leader-epoch-checkpoint"):
        path.write_text("0\n1\n0 0\n")
    for path in node_dir.glob(f"*/{LOG_START_OFFSET_CHECKPOINT}"):
        path.unlink()
    return node_over(node_dir, OFFSET_OF_3B)


@pytest.fixture
def nodes(final_node: MemoryNode, node_of_3b: MemoryNode) -> dict[str, MemoryNode]:
    return {"5-final": final_node, "3b-produce": node_of_3b, "3-data": node_of_3b}


def without_sessions(api: str) -> list[Any]:
    return [each for each in params(api) if each.values[0].case not in SESSION_CASES]


@pytest.mark.parametrize("capture", without_sessions("Fetch"))
def test_kafka_s_answers_to_fetches(capture: Capture, nodes: dict[str, MemoryNode]) -> None:
    answer = capture.ask(nodes[capture.phase])
    if capture.case != CUT:
        assert answer == capture.answer
        return
    theirs = capture.response
    row = theirs.responses[0].partitions[0]
    assert len(row.records) > end_of_whole_batches(row.records) > 0
    row.records = row.records[: end_of_whole_batches(row.records)]
    assert capture.decode(answer) == theirs


def sessions() -> Iterator[Any]:
    """The captures of one session after another: each begins with a full fetch."""
    by_version: dict[int, list[Capture]] = {}
    for capture in captures("Fetch"):
        if capture.case in SESSION_CASES:
            by_version.setdefault(capture.version, []).append(capture)
    for version, story in by_version.items():
        if story[0].case == SESSION_CASES[0]:
            yield pytest.param(story, id=f"v{version}")


@pytest.mark.parametrize("story", list(sessions()))
def test_kafka_s_answers_to_fetches_of_a_session(story: list[Capture], node_of_3b: MemoryNode) -> None:
    """The same bytes, but for the session's id, which is random."""
    theirs = story[0].response.session_id.to_bytes(4)
    first = story[0].ask(node_of_3b)
    ours = story[0].decode(first).session_id.to_bytes(4)
    assert first == story[0].answer.replace(theirs, ours)
    for capture in story[1:]:
        frame = bytes.fromhex(capture.request_hex)
        assert frame.count(theirs) == 1
        answer = node_of_3b.answer(frame.replace(theirs, ours))
        assert answer == capture.answer.replace(theirs, ours)


@pytest.mark.parametrize("capture", [*params("ListOffsets"), *params("OffsetForLeaderEpoch")])
def test_kafka_s_answers_about_offsets(capture: Capture, nodes: dict[str, MemoryNode]) -> None:
    assert capture.ask(nodes[capture.phase]) == capture.answer


@pytest.mark.parametrize("capture", params("DescribeProducers"))
def test_kafka_s_answers_about_producers(capture: Capture, node_of_3b: MemoryNode) -> None:
    assert capture.ask(node_of_3b) == capture.answer


def test_kafka_s_answers_to_deletions_one_after_another(tmp_path: Path) -> None:
    node_dir = storage.extract_node(tmp_path)
    (node_dir / "d1" / LOG_START_OFFSET_CHECKPOINT).unlink()
    node = node_over(node_dir, OFFSET_OF_3B)
    for partition in node.replicas:
        if partition.leading is not None:
            for replica in partition.leading.followers:
                partition.log  # noqa: B018  open it
                partition.fetched(replica, partition.log_end_offset, log_start_offset=MAX_INT64)
    for capture in captures("DeleteRecords"):
        assert capture.ask(node) == capture.answer, str(capture)
