"""Quotas through the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from barnabas.client.admin.part import checked
from barnabas.client.admin.quotas import (
    CLIENT_ID,
    DEFAULT,
    IP,
    USER,
    QuotaEntity,
    QuotaFilter,
    Quotas,
    entity_text,
    is_done,
    quota_entity,
)
from barnabas.client.cluster import Cluster
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from tests.client.admin.guarded import guarded_broker

T = TypeVar("T")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def ask(broker: Broker, question: Callable[[Quotas], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            return await question(Quotas(cluster))

    return asyncio.run(main())


def alter(broker: Broker, entity: QuotaEntity, **values: float | None) -> None:
    checked(ask(broker, lambda quotas: quotas.alter_client_quotas({entity: values})))


def described(broker: Broker, *filters: QuotaFilter, strict: bool = False) -> dict[QuotaEntity, dict[str, float]]:
    return ask(broker, lambda quotas: quotas.describe_client_quotas(filters, strict=strict))


def test_quotas_are_set_changed_and_removed(broker: Broker) -> None:
    entity = quota_entity(user="set", client_id=DEFAULT)
    alter(broker, entity, producer_byte_rate=1000, request_percentage=12.5)
    alter(broker, entity, producer_byte_rate=2000, request_percentage=None)
    assert described(broker, *QuotaFilter.of(entity), strict=True) == {entity: {"producer_byte_rate": 2000.0}}
    alter(broker, entity, producer_byte_rate=None)
    assert described(broker, *QuotaFilter.of(entity), strict=True) == {}


def test_a_filter_asks_for_a_name_for_the_default_or_for_any(broker: Broker) -> None:
    ann, default = quota_entity(user="ann"), quota_entity(user=DEFAULT)
    both, address = quota_entity(user="ann", client_id="app"), quota_entity(ip="127.0.0.9")
    for entity in (ann, default, both):
        alter(broker, entity, consumer_byte_rate=5)
    alter(broker, address, connection_creation_rate=7)
    assert set(described(broker)) >= {ann, default, both, address}
    assert set(described(broker, QuotaFilter.exact(USER, "ann"))) == {ann, both}
    assert set(described(broker, QuotaFilter.exact(USER, "ann"), strict=True)) == {ann}
    assert set(described(broker, QuotaFilter.default(USER))) == {default}
    assert set(described(broker, QuotaFilter.any(CLIENT_ID), QuotaFilter.any(USER))) == {both}
    assert described(broker, QuotaFilter.any(IP)) == {address: {"connection_creation_rate": 7.0}}


def test_one_entity_that_is_refused_is_a_value_beside_the_others(broker: Broker) -> None:
    good, bad = quota_entity(user="good"), quota_entity(user="bad")
    asked = {good: {"producer_byte_rate": 1.0}, bad: {"no_such_rate": 1.0}}
    results = ask(broker, lambda quotas: quotas.alter_client_quotas(asked))
    assert results[good] is None
    refused = results[bad]
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.INVALID_REQUEST


def test_validate_only_changes_nothing(broker: Broker) -> None:
    entity = quota_entity(client_id="tried")
    asked = {entity: {"producer_byte_rate": 1.0}}
    checked(ask(broker, lambda quotas: quotas.alter_client_quotas(asked, validate_only=True)))
    assert entity not in described(broker)


def test_a_filter_that_cannot_be_is_an_error_of_the_whole_call(broker: Broker) -> None:
    with pytest.raises(KafkaError) as refused:
        described(broker, QuotaFilter.any(IP), QuotaFilter.any(USER))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_without_permission_the_whole_call_is_refused() -> None:
    with guarded_broker() as guarded:
        with pytest.raises(KafkaError) as refused:
            described(guarded)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        asked = {quota_entity(user="u"): {"producer_byte_rate": 1.0}}
        (result,) = ask(guarded, lambda quotas: quotas.alter_client_quotas(asked)).values()
        assert result is not None
        assert result.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_whether_quotas_are_as_asked_is_read_from_what_there_is() -> None:
    assert is_done({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": None})
    assert not is_done({"a": 1.0}, {"a": 2.0})
    assert not is_done({"a": 1.0}, {"a": None})
    assert entity_text(quota_entity(ip=DEFAULT)) == "ip (default)"
