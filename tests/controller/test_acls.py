"""Access control entries: what is written for what was asked."""

from __future__ import annotations

from barnabas.controller import acls
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from tests.controller.situations import Story
from tests.instructions import instructions

READ = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
)
WRITE = READ._replace(operation=AclOperation.WRITE)


def test_a_new_entry_gets_an_id_and_one_that_is_there_is_not_written() -> None:
    story = Story()
    assert story.decide(acls.create, [READ, WRITE, READ]) == [None] * 3
    assert [type(record) for record, _ in story.last] == [AccessControlEntryRecord] * 2
    assert sorted(story.image.acls.by_id.values()) == [READ, WRITE]
    assert story.decide(acls.create, [WRITE]) == [None]
    assert story.last == []


def test_a_bad_entry_fails_alone() -> None:
    story = Story()
    nobody, unknown = READ._replace(principal="nobody"), READ._replace(operation=AclOperation(99))
    errors = story.decide(acls.create, [nobody, READ, unknown])
    assert [error and error.code for error in errors] == [ErrorCode.INVALID_REQUEST, None, ErrorCode.INVALID_REQUEST]
    assert list(story.image.acls.index) == [READ]


def test_a_code_of_filters_fails_everything() -> None:
    story = Story()
    errors = story.decide(acls.create, [READ, WRITE._replace(pattern_type=PatternType.MATCH)])
    assert [error and error.code for error in errors] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert story.last == []


def test_what_several_filters_select_is_removed_once_and_told_by_each() -> None:
    story = Story()
    story.decide(acls.create, [READ, WRITE])
    found = story.decide(acls.delete, [AclFilter(operation=AclOperation.READ), AclFilter(principal="User:a")])
    assert found == [[READ], [READ, WRITE]]
    assert [type(record) for record, _ in story.last] == [RemoveAccessControlEntryRecord] * 2
    assert len(story.image.acls.by_id) == len(story.image.acls.index) == 0


def test_more_than_ten_thousand_are_not_removed_at_once() -> None:
    story = Story()
    entries = [READ._replace(resource_name=f"topic-{number}") for number in range(10_001)]
    story.decide(acls.create, entries[:10_000])
    story.decide(acls.create, entries[10_000:])
    try:
        story.decide(acls.delete, [AclFilter()])
        raise AssertionError("it was not refused")
    except KafkaError as error:
        assert error.code == ErrorCode.INVALID_REQUEST
        assert error.message == "Cannot remove more than 10000 acls in a single delete operation."
    names = [entry.resource_name for entry in entries[:2]]
    found = story.decide(acls.delete, [AclFilter(resource_name=name) for name in names])
    assert found == [[entries[0]], [entries[1]]]


def test_a_change_among_many_entries_does_not_cost_what_all_of_them_cost() -> None:
    def work_among(count: int) -> int:
        story = Story()
        story.decide(acls.create, [READ._replace(resource_name=f"topic-{number}") for number in range(count)])
        new = READ._replace(resource_name="new", pattern_type=PatternType.PREFIXED)
        return instructions(lambda: story.decide(acls.create, [new]))

    work_among(1)  # which compiles what all of them use
    assert work_among(10_000) < 2 * work_among(10)


def test_filters_for_one_entry_each_select_it_alone() -> None:
    story = Story()
    story.decide(acls.create, [READ, WRITE, READ._replace(pattern_type=PatternType.PREFIXED)])
    missing = READ._replace(host="10.0.0.1")
    found = story.decide(acls.delete, [AclFilter(*READ), AclFilter(*missing), AclFilter(*READ)])
    assert found == [[READ], [], [READ]]
    assert sorted(story.image.acls.by_id.values()) == sorted([WRITE, READ._replace(pattern_type=PatternType.PREFIXED)])


def test_many_filters_for_one_entry_each_do_not_go_through_all_entries_each() -> None:
    def work_of(count: int) -> int:
        story = Story()
        entries = [READ._replace(resource_name=f"topic-{number}") for number in range(count)]
        story.decide(acls.create, entries)
        found = []
        work = instructions(lambda: found.extend(story.decide(acls.delete, [AclFilter(*entry) for entry in entries])))
        assert found == [[entry] for entry in entries]
        return work

    work_of(1)  # which compiles what all of them use
    assert work_of(1_000) < 15 * work_of(100)
