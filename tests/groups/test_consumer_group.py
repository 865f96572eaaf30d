"""A consumer group as a value: what records make of it, in whatever shape compaction has left them, and single decisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.batches import decode_records, iterate_batches
from barnabas.groups import consumer_heartbeat, consumer_records
from barnabas.groups.consumer_decision import Asker, ConsumerSituation, is_homogeneous
from barnabas.groups.consumer_description import described
from barnabas.groups.consumer_group import (
    ClassicMetadata,
    ConsumerGroup,
    Member,
    MemberState,
    State,
    SubscriptionCount,
    with_member,
    with_regular_expression,
    without_member,
)
from barnabas.groups.consumer_replay import replayed
from barnabas.groups.consumer_settings import ConsumerSettings
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.current_assignment import reconcile, reconcile_in_slices
from barnabas.groups.image import EMPTY_IMAGE as NO_GROUPS
from barnabas.groups.image import GroupsImage
from barnabas.groups.regular_expressions import ResolvedRegularExpression
from barnabas.groups.replay import apply
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.loop import Batch
from barnabas.replicated.machines import decode_key_value
from barnabas.steps import ROWS_PER_STEP, at_once
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from tests.broker.topic_captures import params
from tests.counting import counted
from tests.groups.test_golden_groups import batches, golden_node

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
SITUATION = ConsumerSituation(EMPTY_IMAGE, ConsumerSettings(), 1000, lambda names: len(list(names)))
ASKER = Asker("client", "/127.0.0.1")


def replay_all(records: list[tuple[KeyValue, int]], group: ConsumerGroup | None = None) -> ConsumerGroup | None:
    for record, _ in records:
        group = replayed(group, record.key, record.value)
    return group


partitions = st.dictionaries(
    st.sampled_from([A, B]), st.dictionaries(st.integers(0, 40), st.integers(0, 5), min_size=1)
)
members = st.builds(
    Member,
    member_id=st.text("abc", min_size=1, max_size=2),
    member_epoch=st.integers(-2, 9),
    previous_member_epoch=st.integers(-1, 9),
    state=st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS]),
    instance_id=st.none(),
    rack_id=st.none() | st.just("r"),
    rebalance_timeout_ms=st.integers(-1, 1000),
    subscribed_topic_names=st.frozensets(st.sampled_from("xyz")),
    subscribed_topic_regex=st.sampled_from(["", "x.*", "y"]),
    server_assignor=st.sampled_from([None, "range"]),
    client_id=st.just("client"),
    client_host=st.just("/127.0.0.1"),
    assigned=partitions,
    pending_revocation=st.just({}),
    classic=st.none() | st.just(ClassicMetadata(10, (("range", b"1"), ("other", b"2")))),
)


@st.composite
def consumer_groups(draw: st.DrawFn) -> ConsumerGroup:
    group = ConsumerGroup("g", draw(st.integers(1, 9)), draw(st.integers(-5, 5)), draw(st.integers(1, 9)), 7)
    for member in draw(st.lists(members, max_size=4)):
        group = with_member(group, member)
    targets = {member_id: {A: (draw(st.integers(0, 3)),)} for member_id in group.members}
    return group._replace(target_assignment=PMap(targets))


def test_a_group_is_described_a_member_at_a_time() -> None:
    group = ConsumerGroup("g")
    for number in range(300):
        group = with_member(group, Member(f"member-{number}"))
    row, pauses = counted(described(group, "uniform", EMPTY_IMAGE.topics))
    assert len(row.members) == 300
    assert pauses >= 600, "the hash of each id, and its row"


@given(consumer_groups())
def test_a_group_written_and_read_is_the_same_group(group: ConsumerGroup) -> None:
    again = replay_all(consumer_records.group_records(group))
    assert again is not None
    # Here members may have the same partition, and then who was last counts.
    assert again._replace(partition_epochs=group.partition_epochs) == group
    assert set(again.partition_epochs) == set(group.partition_epochs)


@given(consumer_groups())
def test_its_tombstones_leave_nothing(group: ConsumerGroup) -> None:
    assert replay_all(consumer_records.group_tombstones(group), group) is None
    assert replay_all(consumer_records.group_tombstones(group)) is None


@given(consumer_groups(), st.data())
def test_what_is_kept_beside_the_members_follows_from_them(group: ConsumerGroup, data: st.DataObject) -> None:
    """However they came, changed and went."""
    for member in data.draw(st.lists(members, max_size=5)):
        group = with_member(group, member)
        if data.draw(st.booleans()):
            group = without_member(group, member.member_id)
    again = ConsumerGroup("g")
    for member in group.members.values():
        again = with_member(again, member)
    assert (group.subscriptions, group.patterns) == (again.subscriptions, again.patterns)
    owned = {(t, p) for member in group.members.values() for t, some in member.assigned.items() for p in some}
    assert set(group.partition_epochs) <= owned


def test_topics_of_an_expression_count_once_however_many_members_have_it() -> None:
    group = ConsumerGroup("g")
    for name in ("m", "n"):
        group = with_member(group, Member(name, subscribed_topic_regex="x.*"))
    group = with_regular_expression(group, "x.*", ResolvedRegularExpression(frozenset({"x1", "x2"}), 1, 1))
    assert dict(group.subscriptions) == {"x1": SubscriptionCount(0, 1), "x2": SubscriptionCount(0, 1)}
    assert is_homogeneous(group.patterns, group.subscriptions, 2)
    group = with_member(group, Member("n", subscribed_topic_names=frozenset({"x1"}), subscribed_topic_regex="x.*"))
    assert group.subscriptions["x1"] == (1, 1)
    assert not is_homogeneous(group.patterns, group.subscriptions, 2)
    group = with_regular_expression(group, "x.*", None)
    assert dict(group.subscriptions) == {"x1": SubscriptionCount(1, 0)}


def test_partitions_in_a_record_of_before_4_3_have_the_member_s_epoch() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=4, previous_member_epoch=3)
    row = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=A, partitions=[1, 2])
    value.assigned_partitions = [row]
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    group = replayed(None, key, value)
    assert group is not None
    assert group.members["m"].assigned == {A: {1: 4, 2: 4}}
    assert (group.partition_epoch(A, 1), group.partition_epoch(A, 3)) == (4, -1)
    value.state = 77
    group = replayed(group, key, value)
    assert group is not None
    assert group.members["m"].state is MemberState.UNKNOWN


def test_a_member_in_a_state_of_a_later_version_has_to_let_go_of_everything() -> None:
    member = Member("m", 3, 3, MemberState.UNKNOWN, assigned={A: {0: 3}})
    group = with_member(ConsumerGroup("g"), member)
    for owned in (None, {A: [0]}):
        with pytest.raises(KafkaError) as caught:
            reconcile(group, member, 5, {A: (0,)}, {A}, owned, subscription_changed=False)
        assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    healed = reconcile(group, member, 5, {A: (0,)}, {A}, {}, subscription_changed=False)
    assert (healed.state, healed.member_epoch, healed.assigned) == (MemberState.STABLE, 5, {A: {0: 3}})


def test_the_record_of_kafka_4_0_about_subscriptions_is_removed_at_the_next_heartbeat() -> None:
    group = with_member(ConsumerGroup("g"), Member("m", 1, 0, client_id="client", client_host="/127.0.0.1"))
    group_or_none = replayed(
        group, ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue()
    )
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    result = at_once(consumer_heartbeat.heartbeat(group_or_none, request, ASKER, "new", SITUATION))
    assert [(record.key, record.value) for record, _ in result.records] == [
        (ConsumerGroupPartitionMetadataKey(group_id="g"), None)
    ]


def test_a_heartbeat_that_says_nothing_new_writes_nothing() -> None:
    group = with_member(ConsumerGroup("g"), Member("m", 1, 0, client_id="client", client_host="/127.0.0.1"))
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    result = at_once(consumer_heartbeat.heartbeat(group, request, ASKER, "new", SITUATION))
    assert list(result.records) == []
    assert result.response.response.assignment is None


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_a_group_that_is_not_there_is_not_found(epoch: int) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, instance_id="i")
    decide: Any = consumer_heartbeat.leave if epoch < 0 else consumer_heartbeat.heartbeat
    arguments = (request, SITUATION) if epoch < 0 else (request, ASKER, "new", SITUATION)
    with pytest.raises(KafkaError) as caught:
        at_once(decide(None, *arguments))
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert caught.value.message == ("Group g not found." if epoch < 0 else "Consumer group g not found.")


def test_states_of_a_group() -> None:
    group = ConsumerGroup("g", group_epoch=2, assignment_epoch=1)
    assert group.state is State.EMPTY
    group = with_member(group, Member("m", 1))
    assert group.state is State.ASSIGNING
    group = group._replace(assignment_epoch=2)
    assert group.state is State.RECONCILING
    group = with_member(group, Member("m", 2))
    assert group.state is State.STABLE


# --- the golden cluster


def stages(partition_id: int) -> list[GroupsImage]:
    """What the golden log says after each of its batches."""
    image, found = NO_GROUPS, []
    for data in batches(partition_id):
        _, header = next(iter(iterate_batches(data)))
        if header.is_control:
            continue
        decoded = [decode_key_value(record, "group") for record in decode_records(data, 0, header)]
        records = [each for each in decoded if each is not None]
        image = at_once(apply(image, Batch(header.base_offset, header.last_offset, 0, 0, records)))
        found.append(image)
    return found


@pytest.mark.parametrize("capture", params("ConsumerGroupDescribe"))
def test_kafka_s_descriptions(capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes, when as much has happened as had then."""
    node = golden_node(capture.node)
    images = [image for number in range(3) for image in stages(number) if capture.case in image.groups] or [NO_GROUPS]
    found = []
    for image in images:
        monkeypatch.setattr(GroupCoordinator, "committed_group", lambda _, group_id, image=image: of(image, group_id))
        found.append(capture.ask(node))
    assert capture.answer in found


def of(image: GroupsImage, group_id: str) -> Any:
    return image.groups.get(group_id)


def test_a_heartbeat_of_a_large_group_and_its_records_pause_for_each_member_and_a_few_topics() -> None:
    names = [f"topic-{number}" for number in range(2000)]
    group = ConsumerGroup("g")
    for number in range(200):
        group = with_member(group, Member(f"member-{number}", subscribed_topic_names=frozenset(names[:10])))
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1000, subscribed_topic_names=names, topic_partitions=[]
    )
    decided, pauses = counted(consumer_heartbeat.heartbeat(group, request, ASKER, "new", SITUATION))
    assert len(decided.records) == 205  # the member, two epochs, and a target and a current assignment of members
    assert pauses >= 200 + 2 * 2000 // ROWS_PER_STEP
    image = NO_GROUPS.with_group("g", group)
    batch = Batch(0, len(decided.records) - 1, 0, 0, [record for record, _ in decided.records])
    _, pauses = counted(apply(image, batch))
    assert pauses >= 203 + 2 * 2000 // ROWS_PER_STEP


def test_a_member_with_very_many_topics_is_reconciled_and_replayed_a_few_at_a_time() -> None:
    topics = [Uuid(number.to_bytes(16)) for number in range(1, 2001)]
    target = dict.fromkeys(topics, (0, 1))
    member, pauses = counted(
        reconcile_in_slices(
            ConsumerGroup("g"), Member("m"), 1, target, frozenset(topics), {}, subscription_changed=False
        )
    )
    assert len(member.assigned) == 2000
    assert pauses >= 2000
    record, pauses = counted(consumer_records.current_record_in_slices("g", member))
    assert pauses >= 2000 // ROWS_PER_STEP
    place = Batch(0, 0, 0, 0, [record[0]])
    image, pauses = counted(apply(NO_GROUPS, place))
    again = image.groups["g"]
    assert isinstance(again, ConsumerGroup)
    assert again.members["m"].assigned == member.assigned
    assert pauses >= 2000 + 4000 // ROWS_PER_STEP
