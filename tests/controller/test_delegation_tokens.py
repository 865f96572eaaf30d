"""Delegation tokens: how long they live, who may change them, and what is written."""

from __future__ import annotations

import pytest

from barnabas.controller import delegation_tokens
from barnabas.controller.delegation_tokens import Wanted
from barnabas.metadata.tokens import DelegationToken
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.records.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from tests.controller.situations import Story

ALICE, BOB, EVE = (KafkaPrincipal("User", name) for name in ("alice", "bob", "eve"))
DAY_MS = 86_400_000


def created(story: Story, max_lifetime_ms: int = -1) -> DelegationToken:
    return story.decide(delegation_tokens.create, Wanted(ALICE, EVE, [BOB], max_lifetime_ms))


def test_a_token_is_written_as_kafka_writes_it() -> None:
    story = Story()
    token = created(story)
    assert story.last == [
        (
            DelegationTokenRecord(
                owner="User:alice",
                requester="User:eve",
                renewers=["User:bob"],
                issue_timestamp=story.now_ms,
                max_timestamp=story.now_ms + 7 * DAY_MS,
                expiration_timestamp=story.now_ms + DAY_MS,
                token_id=token.token_id,
            ),
            0,
        )
    ]
    assert story.image.tokens[token.token_id] == token
    assert len(token.token_id) == 22


@pytest.mark.parametrize(
    ("wanted_ms", "life_ms"), [(-1, 7 * DAY_MS), (0, 7 * DAY_MS), (1000, 1000), (2**62, 7 * DAY_MS)]
)
def test_a_life_is_not_longer_than_the_setting(wanted_ms: int, life_ms: int) -> None:
    story = Story()
    token = created(story, wanted_ms)
    assert token.max_timestamp_ms - story.now_ms == life_ms
    assert token.expiration_timestamp_ms - story.now_ms == min(DAY_MS, life_ms)


def test_times_do_not_overflow() -> None:
    story = Story(properties={"delegation.token.max.lifetime.ms": str(2**63 - 1)})
    assert created(story).max_timestamp_ms == 2**63 - 1


@pytest.mark.parametrize(("period_ms", "life_ms"), [(-1, DAY_MS), (1000, 1000), (2**62, DAY_MS)])
def test_owner_and_renewers_renew(period_ms: int, life_ms: int) -> None:
    for caller in (ALICE, BOB):
        story = Story()
        token = created(story)
        story.now_ms += 5000
        expires_ms = story.decide(delegation_tokens.renew, token.token_id, caller, period_ms)
        assert expires_ms == story.now_ms + life_ms
        assert story.image.tokens[token.token_id] == token._replace(expiration_timestamp_ms=expires_ms)


def test_a_renewal_ends_with_the_maximal_age() -> None:
    story = Story()
    token = created(story, DAY_MS + 1000)
    story.now_ms += 5000
    assert story.decide(delegation_tokens.renew, token.token_id, ALICE, -1) == token.max_timestamp_ms


def test_others_may_not_change_a_token() -> None:
    story = Story()
    token = created(story)
    for decision in (delegation_tokens.renew, delegation_tokens.expire):
        with pytest.raises(KafkaError) as refused:
            story.decide(decision, token.token_id, EVE, -1)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        with pytest.raises(KafkaError) as refused:
            story.decide(decision, "none", ALICE, -1)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_expires_at_once_or_later() -> None:
    story = Story()
    first, second = created(story), created(story)
    assert story.decide(delegation_tokens.expire, first.token_id, ALICE, 1000) == story.now_ms + 1000
    assert story.decide(delegation_tokens.expire, second.token_id, BOB, -1) == story.now_ms
    assert story.last == [(RemoveDelegationTokenRecord(token_id=second.token_id), 0)]
    assert list(story.image.tokens) == [first.token_id]


def test_an_expired_token_is_removed_but_not_renewed() -> None:
    story = Story()
    token, other = created(story, 1000), created(story)
    story.now_ms += 1001
    for decision in (delegation_tokens.renew, delegation_tokens.expire):
        with pytest.raises(KafkaError) as refused:
            story.decide(decision, token.token_id, ALICE, 1000)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert story.decide(delegation_tokens.remove_expired) is False
    assert list(story.image.tokens) == [other.token_id]
    assert story.decide(delegation_tokens.remove_expired) is False and not story.last


def test_many_expired_tokens_are_removed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "MAX_REMOVED_AT_ONCE", 2)
    story = Story()
    for _ in range(3):
        created(story, 1)
    story.now_ms += 2
    assert story.decide(delegation_tokens.remove_expired) is True
    assert story.decide(delegation_tokens.remove_expired) is False
    assert not story.image.tokens


def test_an_old_metadata_version_has_no_tokens() -> None:
    with pytest.raises(KafkaError) as refused:
        created(Story(metadata_version=12, elr=False))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
