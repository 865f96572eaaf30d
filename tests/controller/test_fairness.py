"""Large decisions pause between their rows, and so does the replay of what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller import acls, configs, elections, quotas, reassignments, scram, topics
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import Provenance
from barnabas.metadata.replay import replay_in_slices
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.steps import ROWS_PER_STEP
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.controller.situations import Story
from tests.counting import counted

MANY = 1000
NAMES = [f"t{number}" for number in range(MANY)]


def new(name: str, partitions: int = 1) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


def entry(name: str) -> AclEntry:
    allow = AclPermissionType.ALLOW
    return AclEntry(ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", AclOperation.READ, allow)


def more(name: str) -> CreatePartitionsRequest.CreatePartitionsTopic:
    return CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=2, assignments=None)


def credential(name: str) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
    )


RETENTION = {
    ConfigResource(ConfigResourceType.TOPIC, name): {"retention.ms": (configs.AlterOperation.SET, "5")}
    for name in NAMES
}

DECISIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "topics": (topics.create, [[new(f"new-{name}") for name in NAMES]]),
    "a topic of many partitions": (topics.create, [[new("new", MANY)]]),
    "more partitions": (topics.create_partitions, [[more(name) for name in NAMES]]),
    "configs": (configs.alter_incrementally, [RETENTION, False, True]),
    "acls": (acls.create, [[entry(name) for name in NAMES]]),
    "acl filters": (acls.delete, [[AclFilter(resource_name=name) for name in NAMES]]),
    "quotas": (quotas.alter, [[quotas.QuotaAlteration({"user": n}, [("producer_byte_rate", 1.0)]) for n in NAMES]]),
    "credentials": (scram.alter, [[], [credential(name) for name in NAMES]]),
    "elections": (elections.elect, [0, [(name, [0]) for name in NAMES]]),
    "all elections": (elections.elect, [0, None]),
    "reassignments": (reassignments.alter, [[(name, [(0, [1, 2])]) for name in NAMES]]),
}


@pytest.fixture(scope="module")
def story() -> Story:
    story = Story()
    story.decide(topics.create, [new(name) for name in NAMES])
    return story


@pytest.mark.parametrize("what", DECISIONS)
def test_a_decision_and_its_replay_pause_between_a_few_rows(story: Story, what: str) -> None:
    decision, arguments = DECISIONS[what]
    result, pauses = counted(decision(story.situation, *arguments))
    assert pauses >= MANY // ROWS_PER_STEP
    records = [record for record, _ in result.records]
    _, pauses = counted(replay_in_slices(story.image, records, Provenance(10**6, 1, 1)))
    assert pauses >= len(records) // ROWS_PER_STEP


def test_the_deletion_of_many_topics_pauses_too(story: Story) -> None:
    result, pauses = counted(topics.delete(story.situation, list(story.image.topics.by_id)))
    assert pauses >= MANY and len(result.records) == MANY


def test_a_filter_with_a_text_is_compared_with_the_entries_of_that_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[AclEntry] = []
    real = AclFilter.matches

    def matches(self: AclFilter, each: AclEntry) -> bool:
        compared.append(each)
        return real(self, each)

    story = Story()
    story.decide(acls.create, [*(entry(name) for name in NAMES), entry("*")])
    monkeypatch.setattr(AclFilter, "matches", matches)
    literal = AclFilter(resource_name="t7")
    covering = AclFilter(resource_name="t7", pattern_type=PatternType.MATCH)
    assert story.decide(acls.delete, [literal, covering]) == [[entry("t7")], [entry("*"), entry("t7")]]
    assert sorted(compared) == [entry("*"), entry("t7"), entry("t7")]
