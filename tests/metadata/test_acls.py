"""Access control entries in the image: what is enforced follows from what is there, whatever its numbers."""

from __future__ import annotations

import pytest

from barnabas.metadata import tree
from barnabas.metadata.changes import changes
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.security.acl import ResourceType
from barnabas.security.authorizer import AuthorizerSettings, authorized_operations
from barnabas.security.principal import parse_principal
from barnabas.wire import Message, Uuid
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)

HERE = Provenance(1, 1, 1)
START = replay(EMPTY_IMAGE, [FeatureLevelRecord(name="metadata.version", feature_level=30)], HERE)
READ = 1 << 3


def uuid(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


def added(number: int, codes: tuple[int, int, int, int] = (2, 3, 3, 3)) -> Message:
    resource_type, pattern_type, operation, permission_type = codes
    return AccessControlEntryRecord(
        id=uuid(number),
        resource_type=resource_type,
        resource_name="orders",
        pattern_type=pattern_type,
        principal="User:a",
        host="*",
        operation=operation,
        permission_type=permission_type,
    )


def removed(number: int) -> Message:
    return RemoveAccessControlEntryRecord(id=uuid(number))


def may(image: MetadataImage) -> int:
    settings, user = AuthorizerSettings(enabled=True), parse_principal("User:a")
    return authorized_operations(image.acls.index, settings, user, "h", ResourceType.TOPIC, "orders")


def test_an_entry_that_is_there_under_two_ids_is_enforced_until_both_are_gone() -> None:
    twice = replay(START, [added(1), added(2)], HERE)
    once = replay(twice, [removed(1)], HERE)
    gone = replay(once, [removed(2)], HERE)
    assert [may(image) & READ for image in (twice, once, gone)] == [READ, READ, 0]


def test_an_entry_that_comes_and_goes_in_one_batch_leaves_nothing() -> None:
    image = replay(START, [added(1), removed(1)], HERE)
    assert image == START and len(image.acls.index) == 0
    with pytest.raises(ReplayError, match="there is no access control entry"):
        replay(image, [removed(1)], HERE)


def test_what_a_newer_node_has_written_survives_and_allows_nothing() -> None:
    strange = [(99, 3, 3, 3), (2, 99, 3, 3), (2, 3, 99, 3), (2, 3, -7, 77), (0, 0, 0, 0)]
    strangers = [added(number, codes) for number, codes in enumerate(strange, 1)]
    image = replay(START, strangers, HERE)
    written = [record for record, _ in to_records(image)]
    assert written[1:] == strangers
    assert from_records(written, HERE) == image
    assert may(image) == 0
    assert "UNKNOWN_99" in tree.cat(image, f"image/acls/byId/{uuid(3)}")
    assert str(changes(START, image)[2]) == "acl added: ALLOW User:a from * to UNKNOWN_99 on TOPIC LITERAL 'orders'"


def test_a_permission_that_nobody_knows_denies() -> None:
    assert not may(replay(START, [added(1), added(2, (2, 3, 3, 9))], HERE)) & READ
