"""DescribeClientQuotas (48) and AlterClientQuotas (49)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.records.metadata import ClientQuotaRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, captures, final_node, node_before, params
from tests.metadata import golden

FIRST_QUOTA, LAST_QUOTA = 1403, 1421  # offsets in the log of the captured cluster

Entry = AlterClientQuotasRequest.EntryData
Entity = AlterClientQuotasRequest.EntityData
Op = AlterClientQuotasRequest.OpData
Component = DescribeClientQuotasRequest.ComponentData


def entry(parts: dict[str, str | None], **quotas: float | None) -> Entry:
    return Entry(
        entity=[Entity(entity_type=kind, entity_name=name) for kind, name in parts.items()],
        ops=[Op(key=key, value=value or 0, remove=value is None) for key, value in quotas.items()],
    )


def alter(memory: MemoryNode, *entries: Entry, validate_only: bool = False, **peer: Any) -> list[Any]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    rows = memory.call(request, 1, **peer).entries
    return [({e.entity_type: e.entity_name for e in r.entity}, r.error_code, r.error_message) for r in rows]


def shown(entries: list[Any]) -> list[Any]:
    return sorted(entries, key=repr)


@pytest.mark.parametrize("capture", params("DescribeClientQuotas"))
def test_quotas_are_described_as_by_kafka(capture: Capture) -> None:
    memory = final_node() if capture.phase == "5-final" else node_before(LAST_QUOTA + 1)
    answer = capture.ask(memory)
    if capture.stability == "exact":
        assert answer == capture.answer
    else:  # the order is that of a hash table, and depends on what was in it before
        assert shown(capture.decode(answer).entries) == shown(capture.response.entries)


def test_quotas_are_altered_as_by_kafka_with_the_same_records() -> None:
    memory = node_before(FIRST_QUOTA)
    for capture in captures("AlterClientQuotas"):
        assert capture.ask(memory) == capture.answer, str(capture)
    theirs = [
        record
        for batch in golden.log()
        if FIRST_QUOTA <= batch.base_offset <= LAST_QUOTA
        for record in batch.records
        if isinstance(record, ClientQuotaRecord)
    ]
    assert memory.written[:3] == theirs[:3]
    # A few requests that wrote records were not captured.
    assert len(memory.written) > 10 and all(record in theirs for record in memory.written)


def test_an_entity_given_twice_is_refused_although_the_first_is_done() -> None:
    memory = MemoryNode()
    twice = [entry({"user": "a", "client-id": None}, producer_byte_rate=rate) for rate in (1.0, 2.0)]
    message = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=a})"
    assert alter(memory, *twice) == [({"client-id": None, "user": "a"}, 42, message)]
    assert dict(memory.image.quotas[("client-id", None), ("user", "a")]) == {"producer_byte_rate": 1.0}


def test_a_key_given_twice_is_refused_and_nothing_is_done() -> None:
    memory = MemoryNode()
    doubled = entry({"user": "a"}, producer_byte_rate=1.0)
    doubled.ops *= 2
    message = "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})"
    assert alter(memory, doubled) == [({"user": "a"}, 42, message)]
    assert memory.written == []


def test_one_bad_quota_fails_its_entity_and_not_the_others() -> None:
    memory = MemoryNode()
    bad = entry({"user": "bad"}, producer_byte_rate=1.0, consumer_byte_rate=1.5)
    good = entry({"user": "good"}, producer_byte_rate=1.0, consumer_byte_rate=None)
    rows = {parts["user"]: (code, message) for parts, code, message in alter(memory, bad, good)}
    assert rows == {"bad": (42, "consumer_byte_rate cannot be a fractional value."), "good": (0, None)}
    assert list(memory.image.quotas) == [(("user", "good"),)]


def test_only_what_changes_is_written_and_nothing_when_validating() -> None:
    memory = MemoryNode()
    wanted = entry({"client-id": "c"}, request_percentage=50.5)
    assert alter(memory, wanted, validate_only=True) == [({"client-id": "c"}, 0, None)]
    assert memory.written == []
    alter(memory, wanted)
    alter(memory, wanted)
    assert len(memory.written) == 1
    alter(memory, entry({"client-id": "c"}, request_percentage=None))
    assert len(memory.written) == 2 and len(memory.image.quotas) == 0


@pytest.mark.parametrize(
    ("host", "is_known"),
    [("::1", True), ("127.1", True), ("localhost", True), ("no host", False), ("x" * 300, False)],
)
def test_an_address_may_be_a_name_that_can_be_resolved(host: str, is_known: bool) -> None:
    expected = (0, None) if is_known else (42, f"{host} is not a valid IP or resolvable host.")
    assert alter(MemoryNode(), entry({"ip": host}, connection_creation_rate=1.0)) == [({"ip": host}, *expected)]


def test_who_may_not_alter_is_told_so_for_each_entity_as_it_was_given() -> None:
    memory = MemoryNode(authorizer=AUTHORIZER)
    given = [entry({"user": "a", "client-id": "b"}, producer_byte_rate=1.0)] * 2
    row = ({"user": "a", "client-id": "b"}, 31, "Cluster authorization failed.")
    assert alter(memory, *given, principal=ALICE) == [row] * 2
    assert memory.written == []


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (Component(entity_type="", match_type=2, match=None), "Invalid empty entity type."),
        (
            Component(entity_type="user", match_type=1, match="a"),
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            Component(entity_type="user", match_type=2, match="a"),
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
    ],
)
def test_a_filter_that_contradicts_itself_is_refused(component: Component, message: str) -> None:
    response = MemoryNode().call(DescribeClientQuotasRequest(components=[component]), 1)
    assert (response.error_code, response.error_message, response.entries) == (42, message, None)


def test_quotas_of_an_entity_come_sorted() -> None:
    memory = MemoryNode()
    rates = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "controller_mutation_rate": 0.5}
    alter(memory, entry({"user": None}, **rates), entry({"user": "a"}, **rates))
    entries = memory.call(DescribeClientQuotasRequest(), 0).entries
    assert [e.entity[0].entity_name for e in entries] == ["a", None]
    assert [[v.key for v in e.values] for e in entries] == [sorted(rates)] * 2
