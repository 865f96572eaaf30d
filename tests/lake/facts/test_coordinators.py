"""The pure folds of groups and transactions: golden logs, the coordinator's own replay as the judge, cuts and gaps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.batches import ControlType, encode_control_key
from barnabas.groups import replay
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.image import EMPTY_IMAGE, SIMPLE_GROUP, GroupMetadata, GroupsImage
from barnabas.lake.facts import schema
from barnabas.lake.facts.group_kinds import GROUPS, MEMBERS, OFFSETS
from barnabas.lake.facts.groups import GroupsFold
from barnabas.lake.facts.share_partitions import SharePartitionsFold
from barnabas.lake.facts.transactions import TransactionsFold
from barnabas.replicated.decision import KeyValue, Producer
from barnabas.replicated.loop import Batch, Marker
from barnabas.steps import at_once
from barnabas.wire.records import group as records
from barnabas.wire.records.share import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from barnabas.wire.records.transaction import TransactionLogKey, TransactionLogValue
from tests.lake.coordinator_histories import (
    DATA,
    Facts,
    Line,
    as_of,
    extract_coordinators,
    read_lines,
    rows,
    run,
    run_in_cuts,
)

EXPECTED = json.loads((DATA / "coordinators.json").read_text())
MARKER_VALUE = b"\0\0\0\0\0\0"


def value_of(kind: str, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((column.name for column in schema.kinds()[kind].columns), values, strict=True))


def open_values(facts: Facts, kind: str) -> list[dict[str, Any]]:
    return [value_of(kind, fact[7]) for fact in facts.get(kind, [])]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    node = extract_coordinators(tmp_path_factory.mktemp("golden"))
    return sorted(node.glob("d?/*/*.log"))


# --- golden logs


def test_offsets_at_the_end_of_the_golden_logs_are_what_kafka_said(golden: list[Path]) -> None:
    logs = [path for path in golden if "__consumer_offsets" in str(path)]
    found = [row for path in logs for row in open_values(run(GroupsFold, read_lines(path))[1], OFFSETS)]
    said = {
        (group_id, topic["name"], partition["partitionIndex"]): (
            partition["committedOffset"],
            partition["committedLeaderEpoch"],
            partition["metadata"],
        )
        for group_id, group in EXPECTED["groups"].items()
        for topic in group["offsets"]
        for partition in topic["partitions"]
    }
    assert len(logs) == 3
    assert {
        (row["group_id"], row["topic"], row["partition"]): (
            row["committed_offset"],
            -1 if row["committed_leader_epoch"] is None else row["committed_leader_epoch"],
            row["metadata"],
        )
        for row in found
    } == said


def test_groups_at_the_end_of_the_golden_logs_are_what_kafka_said(golden: list[Path]) -> None:
    logs = [path for path in golden if "__consumer_offsets" in str(path)]
    found = [row for path in logs for row in open_values(run(GroupsFold, read_lines(path))[1], GROUPS)]
    names = ("groupType", "protocolType", "groupState")
    assert {row["group_id"]: (row["group_type"], row["protocol_type"], row["state"]) for row in found} == {
        group_id: tuple(group[name] for name in names) for group_id, group in EXPECTED["groups"].items()
    }


def test_an_offset_of_a_transaction_begins_at_the_commit_marker_in_a_log_of_kafka(golden: list[Path]) -> None:
    (path,) = [path for path in golden if "__consumer_offsets-2" in str(path)]
    lines = list(read_lines(path))
    _, found = run(GroupsFold, lines)
    (fact,) = [fact for fact in found[OFFSETS] if fact[7][0] == "g-txn"]
    row = value_of(OFFSETS, fact[7])
    markers = [line for line in lines if line.is_control]
    assert row["record_offset"] < fact[1]
    assert fact[1] in {line.offset for line in markers}
    assert next(line for line in markers if line.offset == fact[1]).time_us == fact[2]


def test_transactions_at_the_end_of_the_golden_logs_are_what_kafka_said(golden: list[Path]) -> None:
    logs = [path for path in golden if "__transaction_state" in str(path)]
    found = [row for path in logs for row in open_values(run(TransactionsFold, read_lines(path))[1], "transactions")]
    assert {row["transactional_id"]: (row["producer_id"], row["state"]) for row in found} == {
        said["transactionalId"]: (said["producerId"], said["transactionState"])
        for of_broker in EXPECTED["transactions"].values()
        for said in of_broker
    }


def test_a_transaction_had_its_partitions_while_it_went_on(golden: list[Path]) -> None:
    (path,) = [path for path in golden if "__transaction_state-0" in str(path)]
    ended, found = run(TransactionsFold, read_lines(path))
    facts = ended["transactions"] + found["transactions"]
    (values,) = [values for key, values in as_of(facts, 1).items() if key == '["tx-1"]']
    row = value_of("transactions", values)
    assert (row["state"], row["start_time"], row["timeout_ms"]) == ("Ongoing", 1794771814936 * 1000, 20000)
    assert row["partitions"] == ({"topic": "d-txn", "partition": 0}, {"topic": "d-txn", "partition": 1})


def test_members_of_a_golden_group_come_and_go_with_what_they_had(golden: list[Path]) -> None:
    (path,) = [path for path in golden if "__consumer_offsets-1" in str(path)]
    ended, found = run(GroupsFold, read_lines(path))
    facts = ended[MEMBERS] + found.get(MEMBERS, [])
    by_group = {row["group_id"]: row for row in (value_of(MEMBERS, fact[7]) for fact in facts)}
    assert set(by_group) == {"g-classic", "g-consumer-empty", "g-cfg1"}
    assert by_group["g-classic"]["subscribed_topics"] == ("d-gzip", "d-none")
    assert [each["topic"] for each in by_group["g-classic"]["assignment"]] == ["d-gzip", "d-none"]
    consumer = by_group["g-consumer-empty"]
    assert (consumer["client_id"], consumer["member_epoch"], consumer["member_state"]) == (
        "g-consumer-empty-0",
        2,
        "Stable",
    )
    assert consumer["assignment"] == consumer["target_assignment"]
    assert all(fact[4] is not None and fact[6] for fact in facts)
    # What one batch says of a member is one fact: its five records at 5 to 9 are one, which a batch at 11 to 14 ends.
    assert [(fact[1], fact[4]) for fact in facts if "g-consumer-empty" in fact[0]] == [(9, 13)]


# --- histories that are made up

GROUP_IDS = ("a", "b")
MEMBER_IDS = ("m", "n")
PRODUCERS = (7, 8)
TOPIC_ID = wire.Uuid(b"\1" * 16)


def _maybe(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), value, value, value)


def _keyed(
    key: st.SearchStrategy[wire.Message], value: st.SearchStrategy[wire.Message], version: int = 0
) -> st.SearchStrategy[tuple[wire.Message, wire.Message | None, int]]:
    return st.tuples(key, _maybe(value), st.just(version))


def _offsets() -> st.SearchStrategy[Any]:
    key = st.builds(
        records.OffsetCommitKey, group=st.sampled_from(GROUP_IDS), topic=st.just("t"), partition=st.integers(0, 1)
    )
    value = st.builds(
        records.OffsetCommitValue,
        offset=st.integers(0, 9),
        metadata=st.sampled_from(("", "é")),
        commit_timestamp=st.integers(0, 3),
        topic_id=st.sampled_from((wire.ZERO_UUID, TOPIC_ID)),
    )
    return _keyed(key, value, 4)


def _classic() -> st.SearchStrategy[Any]:
    member = st.builds(
        records.GroupMetadataValue.MemberMetadata,
        member_id=st.sampled_from(MEMBER_IDS),
        client_id=st.just("client"),
        session_timeout=st.integers(1, 2),
    )
    value = st.builds(
        records.GroupMetadataValue,
        protocol_type=st.sampled_from(("consumer", "connect")),
        generation=st.integers(0, 2),
        members=st.lists(member, max_size=2, unique_by=lambda each: each.member_id),
    )
    return _keyed(st.builds(records.GroupMetadataKey, group=st.sampled_from(GROUP_IDS)), value, 3)


def _modern() -> st.SearchStrategy[Any]:
    def of(name: str, by_member: bool, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        names = {"group_id": st.sampled_from(GROUP_IDS)}
        if by_member:
            names["member_id"] = st.sampled_from(MEMBER_IDS)
        key = st.builds(getattr(records, f"{name}Key"), **names)
        return _keyed(key, st.builds(getattr(records, f"{name}Value"), **fields))

    epoch = st.integers(1, 2)
    target = records.ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    current = records.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    numbers = st.lists(st.integers(0, 2), unique=True)
    return st.one_of(
        of("ConsumerGroupMetadata", False, epoch=epoch),
        of("ConsumerGroupTargetAssignmentMetadata", False, assignment_epoch=epoch),
        of(
            "ConsumerGroupMemberMetadata",
            True,
            client_id=st.just("client"),
            subscribed_topic_names=st.lists(st.sampled_from(("t", "u")), unique=True),
            classic_member_metadata=st.none(),
        ),
        of(
            "ConsumerGroupTargetAssignmentMember",
            True,
            topic_partitions=st.lists(st.builds(target, topic_id=st.just(TOPIC_ID), partitions=numbers), max_size=1),
        ),
        of(
            "ConsumerGroupCurrentMemberAssignment",
            True,
            member_epoch=epoch,
            state=st.integers(0, 2),
            assigned_partitions=st.lists(
                st.builds(current, topic_id=st.just(TOPIC_ID), partitions=numbers, assignment_epochs=st.none()),
                max_size=1,
            ),
        ),
    )


def _batches() -> st.SearchStrategy[Any]:
    """(records, producer) or (None, producer, is_commit)."""
    plain = st.tuples(
        st.lists(st.one_of(_offsets(), _classic(), _modern(), _modern()), min_size=1, max_size=4), st.none()
    )
    in_transaction = st.tuples(
        st.lists(_offsets().filter(lambda each: each[1] is not None), min_size=1, max_size=3),
        st.sampled_from(PRODUCERS),
    )
    marker = st.tuples(st.none(), st.sampled_from(PRODUCERS), st.booleans())
    return st.lists(st.one_of(plain, plain, in_transaction, marker), max_size=25)


class History:
    """Batches as lines of a log, and the image of the coordinator after each of them."""

    def __init__(self, batches: Any) -> None:
        self.lines: list[Line] = []
        self.images: list[tuple[int, GroupsImage]] = []
        image, offset = EMPTY_IMAGE, 0
        for number, (content, producer_id, *is_commit) in enumerate(batches):
            first, producer = offset, None if producer_id is None else Producer(producer_id, 0)
            if content is None:
                kind = ControlType.COMMIT if is_commit[0] else ControlType.ABORT
                key = encode_control_key(kind)
                self.lines.append(Line(offset, number, key, MARKER_VALUE, offset, producer_id, True))
                batch = Batch(first, offset, 0, 0, (), producer, Marker(is_commit[0], 0))
                offset += 1
            else:
                for about, said, version in content:
                    value = None if said is None else wire.encode_record(said, version)
                    self.lines.append(Line(offset, number, wire.encode_record(about, 0), value, offset, producer_id))
                    offset += 1
                pairs = [KeyValue(about, said) for about, said, _ in content]
                batch = Batch(first, offset - 1, 0, 0, pairs, producer)
            image = at_once(replay.apply(image, batch))
            self.images.append((offset - 1, image))


def _all(facts: tuple[Facts, Facts], kind: str) -> list[schema.Fact]:
    return facts[0].get(kind, []) + facts[1].get(kind, [])


def _image_offsets(image: GroupsImage) -> dict[str, tuple[int, str, int]]:
    return {
        schema.key_text(group_id, topic, partition): (committed.offset, committed.metadata, committed.record_offset)
        for group_id, of_group in image.offsets.items()
        for topic, of_topic in of_group.items()
        for partition, committed in of_topic.items()
    }


@settings(max_examples=60, deadline=None)
@given(_batches())
def test_as_of_any_batch_end_offsets_are_those_of_the_coordinator(batches: Any) -> None:
    history = History(batches)
    facts = _all(run(GroupsFold, history.lines), OFFSETS)
    for end, image in history.images:
        found = {key: value_of(OFFSETS, values) for key, values in as_of(facts, end).items()}
        assert {
            key: (row["committed_offset"], row["metadata"], row["record_offset"]) for key, row in found.items()
        } == _image_offsets(image)


@settings(max_examples=60, deadline=None)
@given(_batches())
def test_as_of_any_batch_end_groups_and_members_are_those_of_the_coordinator(batches: Any) -> None:
    history = History(batches)
    result = run(GroupsFold, history.lines)
    groups, members = _all(result, GROUPS), _all(result, MEMBERS)
    for end, image in history.images:
        found = {row["group_id"]: row for row in (value_of(GROUPS, values) for values in as_of(groups, end).values())}
        # A pending offset makes a group in memory; here it does so when it is committed.
        assert {group_id for group_id, group in image.groups.items() if group != SIMPLE_GROUP} <= set(found)
        assert set(found) <= set(image.groups)
        have = {
            (row["group_id"], row["member_id"]): row
            for row in (value_of(MEMBERS, values) for values in as_of(members, end).values())
        }
        said = set()
        for group_id, row in found.items():
            group = image.groups[group_id]
            assert row["group_type"] == ("consumer" if isinstance(group, ConsumerGroup) else "classic")
            if not isinstance(group, ConsumerGroup):
                assert isinstance(group, GroupMetadata)
                assert (row["generation"] or 0, row["protocol_type"] or None) == (group.generation, group.protocol_type)
                said |= {(group_id, member.member_id) for member in group.members}
                continue
            assert (row["group_epoch"] or 1) == group.group_epoch
            known = {member_id: member for member_id, member in group.members.items() if member.client_id}
            assert len(known) < len(group.members) or row["state"] == group.state
            said |= {(group_id, member_id) for member_id in known}
            for member_id, member in known.items():
                values = have[group_id, member_id]
                assert set(values["subscribed_topics"]) == member.subscribed_topic_names
                target = {each["topic_id"]: set(each["partitions"]) for each in values["target_assignment"] or ()}
                assert target == {str(topic): set(of) for topic, of in group.target(member_id).items()}
                assigned = {each["topic_id"]: set(each["partitions"]) for each in values["assignment"] or ()}
                assert assigned == {str(topic): set(of) for topic, of in member.assigned.items()}
        assert set(have) == said


@settings(max_examples=60, deadline=None)
@given(_batches(), st.sets(st.integers(1, 24), max_size=6), st.booleans())
def test_folding_in_cuts_is_folding_at_once(batches: Any, cuts: set[int], has_gaps: bool) -> None:
    lines = History(batches).lines
    if has_gaps:
        lines = [line for line in lines if line.offset % 3]
    ended, found = run(GroupsFold, lines)
    ended_in_cuts, found_in_cuts = run_in_cuts(GroupsFold, lines, cuts)
    assert rows(ended_in_cuts) == rows(ended)
    assert {kind: sorted(facts) for kind, facts in found_in_cuts.items() if kind[0] == "_"} == {
        kind: sorted(facts) for kind, facts in found.items() if kind[0] == "_"
    }
    assert rows(found_in_cuts) == rows(found)


@settings(max_examples=60, deadline=None)
@given(_batches(), st.integers(0, 60), st.booleans())
def test_what_is_exact_in_a_compacted_log_was_so_in_the_whole_one(
    batches: Any, clean_end: int, is_modern: bool
) -> None:
    lines = History([(_as_written(batch[0], is_modern), None) for batch in batches if batch[1] is None]).lines
    latest = {line.key: line.offset for line in lines if line.offset < clean_end}
    left = [line for line in lines if line.offset >= clean_end or latest[line.key] == line.offset]
    whole, compacted = run(GroupsFold, lines), run(GroupsFold, left)
    last = lines[-1].offset if lines else 0
    for kind in (OFFSETS, GROUPS, MEMBERS):
        known = {fact[:6] + fact[7:]: None for fact in map(_hashable, _all(whole, kind))}
        for fact in map(_hashable, _all(compacted, kind)):
            assert not fact[6] or fact[:6] + fact[7:] in known
        now, said = as_of(_all(compacted, kind), last), as_of(_all(whole, kind), last)
        if kind == GROUPS:  # those that have a record of their own
            said = {key: values for key, values in said.items() if {values[5], values[9]} != {None}}
            now = {key: now.get(key) for key in said}
        assert now == said
    assert all(fact[6] for kind in (OFFSETS, GROUPS, MEMBERS) for fact in _all(whole, kind))


def _as_written(content: Any, is_modern: bool) -> list[Any]:
    """Records as coordinators write them: a group is of one type, goes without members, and a member goes with all it has."""
    written: list[Any] = []
    for about, said, version in content:
        name = type(about).__name__
        if name == "GroupMetadataKey" if is_modern else name.startswith("Consumer"):
            continue
        if name == "ConsumerGroupMetadataKey" and said is None:
            continue
        if name == "ConsumerGroupMemberMetadataKey" and said is None:
            whose = {"group_id": about.group_id, "member_id": about.member_id}
            written.append((records.ConsumerGroupCurrentMemberAssignmentKey(**whose), None, 0))
            written.append((records.ConsumerGroupTargetAssignmentMemberKey(**whose), None, 0))
        written.append((about, said, version))
    return written


def _hashable(fact: schema.Fact) -> tuple[Any, ...]:
    return (*fact[:7], repr(fact[7]))


# --- cases


def _commit(offset: int, committed: int, producer_id: int | None = None) -> Line:
    key = wire.encode_record(records.OffsetCommitKey(group="g", topic="t", partition=0), 0)
    value = wire.encode_record(records.OffsetCommitValue(offset=committed, commit_timestamp=offset), 4)
    return Line(offset, offset, key, value, offset, producer_id)


def _end(offset: int, kind: ControlType, producer_id: int) -> Line:
    return Line(offset, offset, encode_control_key(kind), MARKER_VALUE, offset, producer_id, True)


def test_an_aborted_commit_never_counts() -> None:
    lines = [_commit(0, 5), _commit(1, 9, 7), _end(2, ControlType.ABORT, 7)]
    ended, found = run(GroupsFold, lines)
    assert not ended[OFFSETS]
    assert [row["committed_offset"] for row in open_values(found, OFFSETS)] == [5]


def test_a_commit_that_waits_for_its_marker_is_kept_between_runs() -> None:
    lines = [_commit(0, 9, 7)]
    _, found = run(GroupsFold, lines)
    assert OFFSETS not in found and GROUPS not in found and "_pending_offsets" in found
    _, found = run(GroupsFold, [_end(1, ControlType.COMMIT, 7)], found)
    assert [row["committed_offset"] for row in open_values(found, OFFSETS)] == [9]
    assert "_pending_offsets" not in found
    assert found[OFFSETS][0][1] == 1


def test_the_first_fact_after_missing_offsets_is_not_exact_and_later_ones_are() -> None:
    ended, found = run(GroupsFold, [_commit(5, 1), _commit(6, 2), _commit(7, 3), _commit(9, 4), _commit(10, 5)])
    assert [(fact[1], fact[4], fact[6]) for fact in ended[OFFSETS]] == [
        (5, 6, False),
        (6, 7, True),
        (7, 9, False),  # offset 8 may have been another commit
        (9, 10, False),
    ]
    assert [(fact[1], fact[6]) for fact in found[OFFSETS]] == [(10, True)]


def test_a_tombstone_ends_a_transactional_id_and_unknown_records_change_nothing() -> None:
    key = wire.encode_record(TransactionLogKey(transactional_id="x"), 0)
    value = wire.encode_record(TransactionLogValue(producer_id=3, transaction_status=1), 1)
    newer = b"\0\x63" + value[2:]
    lines = [
        Line(0, 0, key, value),
        Line(1, 1, key, newer),
        Line(2, 2, b"\0\x63some key", value),
        Line(3, 3, None, value),
        Line(4, 4, key, None),
    ]
    ended, found = run(TransactionsFold, lines)
    assert [(fact[1], fact[4]) for fact in ended["transactions"]] == [(0, 4)]
    assert "transactions" not in found


def test_the_position_of_a_share_group_is_that_of_its_last_snapshot_and_the_updates_after_it() -> None:
    key = ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=1)
    update = ShareUpdateKey(group_id="g", topic_id=TOPIC_ID, partition=1)
    other = ShareUpdateKey(group_id="h", topic_id=TOPIC_ID, partition=0)
    pairs: list[tuple[wire.Message, wire.Message | None]] = [
        (key, ShareSnapshotValue(state_epoch=1, leader_epoch=0, start_offset=-1, delivery_complete_count=0)),
        (update, ShareUpdateValue(leader_epoch=2, start_offset=5, delivery_complete_count=1)),
        (update, ShareUpdateValue(leader_epoch=2, start_offset=5, delivery_complete_count=1)),  # other records changed
        (update, ShareUpdateValue(leader_epoch=-1, start_offset=-1, delivery_complete_count=3)),
        (other, ShareUpdateValue(leader_epoch=4, start_offset=9)),  # its snapshot was deleted
        (update, None),
        (key, ShareSnapshotValue(state_epoch=2, leader_epoch=3, start_offset=8, delivery_complete_count=0)),
        (key, None),
    ]
    lines = [
        Line(number, 0, wire.encode_record(key, 0), None if value is None else wire.encode_record(value, 0))
        for number, (key, value) in enumerate(pairs)
    ]
    ended, found = run(SharePartitionsFold, lines)
    names = ("start_offset", "delivery_complete_count", "state_epoch", "leader_epoch")
    rows = []
    for fact in ended["share_partitions"]:
        values = value_of("share_partitions", fact[7])
        rows.append((fact[1], fact[4], tuple(values[name] for name in names)))
    assert rows == [
        (0, 1, (None, 0, 1, 0)),
        (1, 3, (5, 1, 1, 2)),
        (3, 6, (5, 3, 1, 2)),
        (6, 7, (8, 0, 2, 3)),
    ]
    (row,) = open_values(found, "share_partitions")
    assert row == {
        "group_id": "h",
        "topic_id": str(TOPIC_ID),
        "partition": 0,
        "start_offset": 9,
        "delivery_complete_count": None,
        "state_epoch": None,
        "leader_epoch": 4,
    }


def test_share_and_streams_groups_have_members_and_what_these_are_to_have() -> None:
    share = records.ShareGroupCurrentMemberAssignmentValue
    tasks = records.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    part, info = records.StreamsGroupTopologyValue.Subtopology, records.StreamsGroupTopologyValue.TopicInfo
    pairs: list[tuple[wire.Message, wire.Message]] = [
        (records.ShareGroupMetadataKey(group_id="s"), records.ShareGroupMetadataValue(epoch=3)),
        (
            records.ShareGroupMemberMetadataKey(group_id="s", member_id="m"),
            records.ShareGroupMemberMetadataValue(client_id="c", subscribed_topic_names=["t"]),
        ),
        (
            records.ShareGroupCurrentMemberAssignmentKey(group_id="s", member_id="m"),
            share(member_epoch=3, assigned_partitions=[share.TopicPartitions(topic_id=TOPIC_ID, partitions=[1, 0])]),
        ),
        (
            records.StreamsGroupTopologyKey(group_id="z"),
            records.StreamsGroupTopologyValue(
                subtopologies=[
                    part(source_topics=["lines"], repartition_sink_topics=["z-words"]),
                    part(repartition_source_topics=[info(name="z-words")], state_changelog_topics=[info(name="z-log")]),
                ]
            ),
        ),
        (records.StreamsGroupMetadataKey(group_id="z"), records.StreamsGroupMetadataValue(epoch=2)),
        (
            records.StreamsGroupTargetAssignmentMetadataKey(group_id="z"),
            records.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=2),
        ),
        (
            records.StreamsGroupMemberMetadataKey(group_id="z", member_id="m"),
            records.StreamsGroupMemberMetadataValue(client_id="c", process_id="p"),
        ),
        (
            records.StreamsGroupCurrentMemberAssignmentKey(group_id="z", member_id="m"),
            records.StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=2, state=1, active_tasks=[tasks(subtopology_id="0", partitions=[0], assignment_epochs=[2])]
            ),
        ),
    ]
    lines = [
        Line(number, 0, wire.encode_record(key, 0), wire.encode_record(value, 0))
        for number, (key, value) in enumerate(pairs)
    ]
    _, found = run(GroupsFold, lines)
    groups = {
        row["group_id"]: (row["group_type"], row["state"], row["group_epoch"]) for row in open_values(found, GROUPS)
    }
    assert groups == {"s": ("share", "Stable", 3), "z": ("streams", "Stable", 2)}
    topics = {row["group_id"]: row["topology_topics"] for row in open_values(found, GROUPS)}
    assert topics == {"s": None, "z": ("lines", "z-log", "z-words")}
    of_share, of_streams = open_values(found, MEMBERS)
    assert of_share["assignment"] == ({"topic": None, "topic_id": str(TOPIC_ID), "partitions": (0, 1)},)
    assert of_streams["tasks"] == ({"role": "active", "subtopology_id": "0", "partitions": (0,)},)
