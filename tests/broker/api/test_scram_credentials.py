"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.records.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tests.broker.harness import FEATURES, MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, captures, final_node, node_before, params
from tests.metadata import golden

FIRST, AFTER_CONFIGS, AFTER_ALICE = 1421, 1428, 1872  # offsets in the log of the captured cluster

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
User = DescribeUserScramCredentialsRequest.UserName


def upsertion(name: str, **fields: Any) -> Upsertion:
    given = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32, **fields}
    return Upsertion(name=name, **given)


def alter(memory: MemoryNode, *alterations: Deletion | Upsertion, **peer: Any) -> list[tuple[str, int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in alterations if isinstance(each, Deletion)],
        upsertions=[each for each in alterations if isinstance(each, Upsertion)],
    )
    return [(row.user, row.error_code, row.error_message) for row in memory.call(request, 0, **peer).results]


@pytest.mark.parametrize("capture", params("DescribeUserScramCredentials"))
def test_credentials_are_described_as_by_kafka(capture: Capture) -> None:
    if capture.phase == "5-final":
        memory = final_node()
    else:
        memory = node_before(AFTER_CONFIGS if capture.phase == "2-configs" else AFTER_ALICE)
    answer = capture.ask(memory)
    if capture.case == "final, all":  # the mechanisms of a user come in an order that is not fixed
        mine, theirs = capture.decode(answer), capture.response
        for row in theirs.results:
            row.credential_infos.sort(key=lambda credential: credential.mechanism)
        assert mine == theirs
    else:
        assert answer == capture.answer


def test_credentials_are_altered_as_by_kafka_with_the_same_records() -> None:
    memory = node_before(FIRST)
    for capture in captures("AlterUserScramCredentials"):
        assert capture.ask(memory) == capture.answer, str(capture)
    kinds = UserScramCredentialRecord | RemoveUserScramCredentialRecord
    assert memory.written == [
        record
        for batch in golden.log()
        if FIRST <= batch.base_offset < AFTER_ALICE
        for record in batch.records
        if isinstance(record, kinds)
    ]


def test_what_is_removed_comes_before_what_is_set_and_errors_come_last() -> None:
    memory = MemoryNode()
    assert alter(memory, upsertion("gone"), upsertion("twice")) == [("twice", 0, None), ("gone", 0, None)]
    rows = alter(
        memory,
        upsertion("", mechanism=9),
        upsertion("new", mechanism=2, iterations=16384),
        Deletion(name="nobody", mechanism=1),
        Deletion(name="gone", mechanism=1),
        Deletion(name="twice", mechanism=1),
        upsertion("twice"),
    )
    assert rows == [
        ("gone", 0, None),
        ("new", 0, None),
        ("", 93, "Username must not be empty"),
        ("twice", 92, "A user credential cannot be altered twice in the same request"),
        ("nobody", 91, "Attempt to delete a user credential that does not exist"),
    ]
    assert {(user.name, user.mechanism) for user in memory.image.scram} == {("twice", 1), ("new", 2)}


def test_an_empty_password_is_the_fault_that_it_is_in_kafka() -> None:
    memory = MemoryNode()
    rows = alter(memory, upsertion("a", salted_password=b""), upsertion("b"))
    assert rows == [("b", 0, None), ("a", -1, None)]


def test_an_old_metadata_version_has_no_credentials() -> None:
    memory = MemoryNode(features={**FEATURES, "metadata.version": 10})
    message = "The current metadata.version does not support SCRAM"
    assert alter(memory, Deletion(name="b", mechanism=1), upsertion("a")) == [("a", 35, message), ("b", 35, message)]
    assert memory.written == []


def test_who_may_not_alter_is_told_so_for_each_user_by_name() -> None:
    memory = MemoryNode(authorizer=AUTHORIZER)
    message = "The request of User:alice from 127.0.0.1 needs ALTER permission."
    rows = alter(
        memory, upsertion("b"), upsertion("c"), Deletion(name="a", mechanism=1), upsertion("c"), principal=ALICE
    )
    assert rows == [(name, 31, message) for name in "abc"]


@pytest.mark.parametrize(("users", "rows"), [(None, 0), ([User(name="a"), User(name="b")], 2)])
def test_who_may_not_describe_learns_nothing(users: list[User] | None, rows: int) -> None:
    memory = MemoryNode(authorizer=AUTHORIZER)
    alter(memory, upsertion("a"))
    response = memory.call(DescribeUserScramCredentialsRequest(users=users), 0, principal=ALICE)
    assert (response.error_code, response.error_message) == (31, None)
    found = [(r.user, r.error_code, r.error_message, r.credential_infos) for r in response.results]
    assert found == [("", 31, None, [])] * rows


def test_no_secret_is_in_the_answers() -> None:
    memory = MemoryNode()
    alter(memory, upsertion("a"))
    (credential,) = memory.image.scram.values()
    answer = repr(memory.call(DescribeUserScramCredentialsRequest(users=None), 0))
    assert "4096" in answer
    assert not any(
        repr(secret)[2:-1] in answer for secret in (credential.salt, credential.stored_key, credential.server_key)
    )
