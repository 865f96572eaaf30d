"""SCRAM credentials: what is written for what was asked."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from barnabas.controller import scram
from barnabas.controller.scram import Deletion, Upsertion
from barnabas.metadata.scram import ScramUser
from barnabas.wire import ErrorCode
from tests.controller.situations import Story


def upsertion(name: str = "a", mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted" * 8)


@pytest.mark.parametrize(("mechanism", "digest"), [(1, "sha256"), (2, "sha512")])
def test_what_is_kept_is_made_of_the_salted_password_and_does_not_hold_it(mechanism: int, digest: str) -> None:
    story = Story()
    assert story.decide(scram.alter, [], [upsertion(mechanism=mechanism)]) == {"a": None}
    kept = story.image.scram[ScramUser(mechanism, "a")]
    client_key = hmac.digest(b"salted" * 8, b"Client Key", digest)
    assert kept.stored_key == hashlib.new(digest, client_key).digest()
    assert kept.server_key == hmac.digest(b"salted" * 8, b"Server Key", digest)
    assert (kept.salt, kept.iterations) == (b"salt", 4096)


def test_a_credential_is_replaced_and_removed() -> None:
    story = Story()
    for iterations in (4096, 16384):
        story.decide(scram.alter, [], [upsertion(iterations=iterations)])
        assert story.image.scram[ScramUser(1, "a")].iterations == iterations
    story.decide(scram.alter, [Deletion(name="a", mechanism=1)], [])
    assert len(story.image.scram) == 0


@pytest.mark.parametrize(
    ("deletions", "upsertions", "code"),
    [
        ([], [upsertion(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(mechanism=3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([Deletion(name="a", mechanism=0)], [], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([Deletion(name="a", mechanism=2)], [], ErrorCode.RESOURCE_NOT_FOUND),
        ([Deletion(name="a", mechanism=1)] * 3, [], ErrorCode.DUPLICATE_RESOURCE),
        ([Deletion(name="a", mechanism=1)], [upsertion(mechanism=2)], ErrorCode.DUPLICATE_RESOURCE),
        ([], [upsertion(), upsertion(mechanism=2), upsertion()], ErrorCode.DUPLICATE_RESOURCE),
        # A user that failed once has that error, however often it is named.
        ([Deletion(name="a", mechanism=2)], [upsertion()], ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_bad_alteration_changes_nothing(
    deletions: list[Deletion], upsertions: list[Upsertion], code: ErrorCode
) -> None:
    story = Story()
    story.decide(scram.alter, [], [upsertion()])
    errors = story.decide(scram.alter, deletions, upsertions)
    assert [(name, error and error.code) for name, error in errors.items()] == [("a", code)]
    assert story.last == []
