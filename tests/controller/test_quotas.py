"""Client quotas: what is written for what was asked."""

from __future__ import annotations

import pytest

from barnabas.controller import quotas
from barnabas.controller.quotas import QuotaAlteration
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.records.metadata import ClientQuotaRecord
from tests.controller.situations import Story

Parts = dict[str, str | None]


def rate(parts: Parts, value: float | None = 1.0, key: str = "producer_byte_rate") -> QuotaAlteration:
    return QuotaAlteration(parts, [(key, value)])


def told(story: Story, *alterations: QuotaAlteration) -> list[tuple[Parts, str | None]]:
    results = story.decide(quotas.alter, alterations)
    return [(dict(entity), None if error is None else error.message) for entity, error in results]


def test_quotas_are_set_changed_and_removed() -> None:
    story = Story()
    parts: Parts = {"user": "u", "client-id": "c"}
    for value in (1.0, 2.0):
        assert told(story, rate(parts, value)) == [(parts, None)]
        (entity,) = story.image.quotas
        assert dict(story.image.quotas[entity]) == {"producer_byte_rate": value}
    ((record, version),) = story.last
    assert isinstance(record, ClientQuotaRecord) and version == 0
    assert [(part.entity_type, part.entity_name) for part in record.entity] == [("client-id", "c"), ("user", "u")]
    told(story, rate(parts, None))
    assert len(story.image.quotas) == 0


def test_rows_come_in_the_order_of_kafkas_hash_table() -> None:
    rows = told(Story(), *(rate({"user": name}) for name in "fabedc"))
    assert [parts["user"] for parts, _ in rows] == list("cdfeba")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"shoe": "a"}, "Unhandled client quota entity type: shoe"),
        ({"client-id": "", "user": "u"}, "Empty client-id not supported"),
        (
            {"user": "u", "ip": "1.2.3.4"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "nowhere"}, "nowhere is not a valid IP or resolvable host."),
    ],
)
def test_an_entity_that_cannot_be_is_refused(parts: Parts, message: str) -> None:
    story = Story()
    ((_, error),) = story.decide(quotas.alter, [rate(parts)], {"nowhere"})
    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, message)
    assert story.last == []


def test_addresses_and_users_have_quotas_of_their_own() -> None:
    story = Story()
    address: Parts = {"ip": None}
    assert told(story, rate(address, 5.0, "connection_creation_rate")) == [(address, None)]
    assert told(story, rate(address)) == [(address, "Invalid configuration key producer_byte_rate")]
    user: Parts = {"user": None}
    assert told(story, rate(user, 5.0, "connection_creation_rate")) == [
        (user, "Invalid configuration key connection_creation_rate")
    ]


def test_a_key_to_remove_need_not_be_known() -> None:
    story = Story()
    assert told(story, rate({"user": "u"}, None, "shoe_size")) == [({"user": "u"}, None)]
    assert story.last == []


def test_more_than_ten_thousand_records_are_refused_altogether() -> None:
    with pytest.raises(KafkaError, match="excessively large batch"):
        Story().decide(quotas.alter, [rate({"user": f"u{number}"}) for number in range(10_001)])
