"""Large decisions pause between their rows, and so does the replay of what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller import acls, brokers, configs, elections, quotas, reassignments, scram, topics
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import Provenance
from barnabas.metadata.replay import replay_in_slices
from barnabas.metadata.topics import UNASSIGNED_DIR, VISITS_PER_STEP
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.steps import ROWS_PER_STEP
from barnabas.wire import Uuid
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.broker.harness import CLUSTER_ID, register_broker
from tests.controller.situations import Story, partition, topic
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


DIRECTORY = register_broker(1).log_dirs[0]
Feature = BrokerRegistrationRequest.Feature
REGISTRATION = BrokerRegistrationRequest(
    broker_id=1,
    cluster_id=CLUSTER_ID,
    incarnation_id=Uuid(b"next" * 4),
    features=[
        Feature(name="metadata.version", min_supported_version=7, max_supported_version=30),
        Feature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
    ],
    log_dirs=[DIRECTORY],
)


def heartbeat(**wishes: Any) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=1, broker_epoch=101, current_metadata_offset=1 << 40, **wishes)


BROKER_DECISIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "is fenced": (brokers.heartbeat, [heartbeat(want_fence=True)]),
    "shuts down": (brokers.heartbeat, [heartbeat(want_shut_down=True)]),
    "loses a log dir": (brokers.heartbeat, [heartbeat(offline_log_dirs=[DIRECTORY])]),
    "is silent": (brokers.fence_stale_brokers, []),
    "is started again after a crash": (brokers.register, [REGISTRATION, 4]),
    "is removed": (brokers.unregister, [1]),
}


@pytest.mark.parametrize("what", BROKER_DECISIONS)
def test_a_broker_of_many_partitions_changes_between_the_turns_of_others(what: str) -> None:
    directories = [DIRECTORY, UNASSIGNED_DIR]
    story = Story(topic(*(partition([1, 2], directories=directories) for _ in range(MANY))), elr=False)
    story.wait(9001)
    decision, arguments = BROKER_DECISIONS[what]
    result, pauses = counted(decision(story.situation, *arguments))
    assert sum(isinstance(record, PartitionChangeRecord) for record, _ in result.records) == MANY
    assert pauses >= MANY


def test_a_broker_that_comes_back_gets_its_leaders_between_the_turns_of_others() -> None:
    story = Story(topic(*(partition([1], [1], leader=-1) for _ in range(MANY))))
    story.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=1)])
    result, pauses = counted(brokers.heartbeat(story.situation, heartbeat()))
    assert sum(isinstance(record, PartitionChangeRecord) for record, _ in result.records) == MANY
    assert pauses >= MANY


@pytest.mark.parametrize("what", ["is fenced", "is silent", "is started again after a crash", "is removed"])
def test_the_partitions_of_other_brokers_are_passed_by_with_pauses(what: str) -> None:
    story = Story(topic(*(partition([2, 3]) for _ in range(10 * VISITS_PER_STEP))))
    story.wait(9001)
    decision, arguments = BROKER_DECISIONS[what]
    result, pauses = counted(decision(story.situation, *arguments))
    assert len(result.records) <= 1 and pauses >= 10


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
