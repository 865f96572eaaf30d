"""What a broker tells the controller of where its replicas are: in batches, again after failures, the last word only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.broker import directory_assignments
from barnabas.broker.directory_assignments import DirectoryAssignments, Replica
from barnabas.metadata.image import EMPTY_IMAGE, Provenance
from barnabas.metadata.replay import replay
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.wire.records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord

T, U, GONE = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))
A, B = (Uuid(bytes([number]) * 16) for number in (11, 12))
Response = AssignReplicasToDirsResponse
Rows = list[AssignReplicasToDirsRequest.DirectoryData]
Said = dict[tuple[Uuid, Uuid], list[int]]


def records(version: int = 30) -> list[Message]:
    made: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=version)]
    for name, topic_id in (("t", T), ("u", U)):
        made.append(TopicRecord(name=name, topic_id=topic_id))
        made += [
            PartitionRecord(topic_id=topic_id, partition_id=index, replicas=[1], isr=[1], leader=1, directories=[A])
            for index in range(3)
        ]
    return made


class Controller:
    """Answers with these in turn: an exception, or the error of every partition."""

    def __init__(self, *answers: Exception | ErrorCode) -> None:
        self.answers = list(answers)
        self.asked: list[Said] = []

    async def send(self, directories: Rows) -> Response:
        self.asked.append(
            {
                (row.id, topic.topic_id): [p.partition_index for p in topic.partitions]
                for row in directories
                for topic in row.topics
            }
        )
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        rows = [
            Response.DirectoryData(
                id=row.id,
                topics=[
                    Response.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            Response.PartitionData(partition_index=p.partition_index, error_code=answer)
                            for p in topic.partitions
                        ],
                    )
                    for topic in row.topics
                ],
            )
            for row in directories
        ]
        return Response(directories=rows)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_assignments, "MIN_BACKOFF_S", 0.001)


def run(
    controller: Controller, tell: Callable[[DirectoryAssignments, list[Replica]], None], version: int = 30
) -> list[Replica]:
    """Which were accepted, in order, when nothing is left to tell."""
    image = replay(EMPTY_IMAGE, records(version), Provenance(1, 1, 1))
    accepted: list[Replica] = []

    async def scenario() -> None:
        assignments = DirectoryAssignments(1, lambda: image, controller.send)
        tell(assignments, accepted)
        assignments.start()
        async with asyncio.timeout(10):
            while assignments.pending:
                await asyncio.sleep(0.005)
        await assignments.stop()

    asyncio.run(scenario())
    return accepted


def assign(to: DirectoryAssignments, accepted: list[Replica], topic_id: Uuid, index: int, directory: Uuid = B) -> None:
    replica = Replica(topic_id, index)
    to.assign(replica, directory, lambda: accepted.append(replica))


def test_all_that_there_is_to_tell_goes_into_one_request() -> None:
    controller = Controller()

    def tell(to: DirectoryAssignments, accepted: list[Replica]) -> None:
        for topic_id, index in ((T, 0), (U, 1), (T, 2)):
            assign(to, accepted, topic_id, index)

    assert len(run(controller, tell)) == 3
    assert controller.asked == [{(B, T): [0, 2], (B, U): [1]}]


def test_the_last_word_about_a_replica_counts() -> None:
    controller = Controller()

    def tell(to: DirectoryAssignments, accepted: list[Replica]) -> None:
        assign(to, accepted, T, 0, B)
        assign(to, accepted, T, 1, B)
        assign(to, accepted, T, 0, A)

    assert sorted(run(controller, tell)) == [Replica(T, 0), Replica(T, 1)]
    assert controller.asked == [{(B, T): [1]}]  # the first is where the image has it


@pytest.mark.parametrize(
    "answer", [KafkaError(ErrorCode.STALE_BROKER_EPOCH), ConnectionError("lost"), ErrorCode.NOT_CONTROLLER]
)
def test_what_was_not_taken_is_told_again(answer: Exception | ErrorCode) -> None:
    controller = Controller(answer, answer)
    assert run(controller, lambda to, accepted: assign(to, accepted, T, 0)) == [Replica(T, 0)]
    assert controller.asked == [{(B, T): [0]}] * 3


def test_replicas_that_the_cluster_does_not_know_are_not_spoken_of() -> None:
    controller = Controller()

    def tell(to: DirectoryAssignments, accepted: list[Replica]) -> None:
        assign(to, accepted, GONE, 0)
        assign(to, accepted, T, 7)

    assert (run(controller, tell), controller.asked) == ([], [])


def test_a_cluster_that_knows_no_directories_is_told_nothing() -> None:
    controller = Controller()
    accepted = run(controller, lambda to, accepted: assign(to, accepted, T, 0), version=15)
    assert (accepted, controller.asked) == ([Replica(T, 0)], [])


def test_a_request_has_no_more_than_kafka_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_assignments, "MAX_ASSIGNMENTS_PER_REQUEST", 2)
    controller = Controller()

    def tell(to: DirectoryAssignments, accepted: list[Replica]) -> None:
        for index in range(3):
            assign(to, accepted, T, index)

    assert len(run(controller, tell)) == 3
    assert controller.asked == [{(B, T): [0, 1]}, {(B, T): [2]}]
