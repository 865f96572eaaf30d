"""What Apache Kafka 4.3.1's assignor "simple" gave to random groups in five rounds each, compared with ours.

Not compared: the order of topics within one member's assignment, which rarely differs.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from barnabas.groups.assignors import Assignment
from barnabas.groups.share.assignor import MemberSpecification, ShareSpecification, assign
from barnabas.steps import at_once
from barnabas.wire import Uuid

DATA = Path(__file__).parent / "data" / "assignments.jsonl.gz"


def assignment(row: dict[str, list[int]]) -> dict[Uuid, tuple[int, ...]]:
    return {Uuid.parse(topic_id): tuple(numbers) for topic_id, numbers in row.items()}


def test_members_get_the_partitions_that_kafka_gave_them() -> None:
    with gzip.open(DATA, "rt") as lines:
        for number, line in enumerate(map(json.loads, lines)):
            able = {Uuid.parse(topic_id): numbers for topic_id, numbers in line["able"].items()}
            members = {
                member_id: MemberSpecification(
                    len(row["topics"]), [Uuid.parse(topic_id) for topic_id in row["topics"]], assignment(row["old"])
                )
                for member_id, row in line["members"].items()
            }
            found = at_once(assign(ShareSpecification(members, line["homogeneous"], able.__getitem__)))
            expected: dict[str, Assignment] = {
                member_id: assignment(row["new"]) for member_id, row in line["members"].items()
            }
            assert found == expected, number
