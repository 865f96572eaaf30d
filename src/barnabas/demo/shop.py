"""The shop's topics, ACLs, quotas and users. Only values.

Some of it is planted to be found: a redundant ACL entry, a denial of what no entry allows, an entry for a deleted
topic, a topic without writers, and one without readers.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.admin.quotas import QuotaEntity, quota_entity
from barnabas.client.admin.topics import NewTopic
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
CLICKS: Final = "clicks"
AUDIT: Final = "audit"
CUSTOMERS: Final = "customers"
EXPORTS: Final = "exports"
RETURNS: Final = "returns"
SHIPMENTS: Final = ("shipments.apac", "shipments.eu", "shipments.us")

TOPICS: Final = (
    NewTopic(ORDERS, partitions=6, configs={"retention.ms": str(WEEK_MS)}),
    NewTopic(PAYMENTS, partitions=3, configs={"retention.ms": str(30 * DAY_MS)}),
    *(NewTopic(name, partitions=2) for name in SHIPMENTS),
    NewTopic(CLICKS, partitions=3, configs={"retention.ms": str(2 * DAY_MS), "segment.bytes": "1048576"}),
    NewTopic(AUDIT, partitions=1, configs={"retention.ms": "-1"}),
    NewTopic(CUSTOMERS, partitions=2, configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}),
    NewTopic(EXPORTS, partitions=12, configs={"retention.ms": "-1"}),  # written once, never read
    NewTopic("promotions", partitions=3),  # never written to
)
SHORT_LIVED: Final = NewTopic(RETURNS, partitions=2)
"""Created, written to, and deleted before the end."""
CLICKS_PARTITIONS: Final = 6
"""The final number of partitions of `clicks`."""
AUDIT_DELETED: Final = 50
"""The number of first records of `audit` that are deleted."""

BILLING: Final = "billing"
LEDGER: Final = "ledger"
DISPATCH: Final = "dispatch"
RECOMMENDATIONS: Final = "recommendations"
SEARCH: Final = "search-index"

QUOTAS: Final[dict[QuotaEntity, dict[str, float | None]]] = {
    quota_entity(user="analytics"): {"consumer_byte_rate": 20e6},
    quota_entity(client_id="clicks-collector"): {"producer_byte_rate": 50e6},
}
USER: Final = "analytics"
FORMER_USER: Final = "contractor"


def _acl(
    who: str,
    operation: AclOperation,
    name: str,
    *,
    resource: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclEntry:
    return AclEntry(resource, name, pattern, f"User:{who}", "*", operation, permission)


_READ, _WRITE, _DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
_GROUP, _PREFIXED = ResourceType.GROUP, PatternType.PREFIXED

SHADOWED: Final = _acl("billing", _READ, ORDERS)
DUPLICATE_IN_EFFECT: Final = _acl("checkout", _DESCRIBE, ORDERS)
NEVER_DENIES: Final = _acl("intern", _WRITE, AUDIT, permission=AclPermissionType.DENY)
OF_A_DELETED_TOPIC: Final = _acl("checkout", _WRITE, RETURNS)
EVERYTHING: Final = _acl("ops", AclOperation.ALL, "*")
FOR_A_WHILE: Final = _acl("*", _READ, "*")
"""Granted to everyone and revoked. Only the history shows what was open, and when."""

ACLS: Final = (
    _acl("checkout", _WRITE, ORDERS),
    DUPLICATE_IN_EFFECT,  # WRITE implies DESCRIBE
    OF_A_DELETED_TOPIC,
    _acl("billing", _READ, "order", pattern=_PREFIXED),
    SHADOWED,  # by the previous entry
    _acl("billing", _WRITE, PAYMENTS),
    _acl("billing", _READ, BILLING, resource=_GROUP),
    *(_acl("courier", _READ, name) for name in SHIPMENTS),  # one prefix would be enough
    _acl("courier", _READ, "courier", resource=_GROUP),  # there is no such group
    _acl("analytics", _READ, CLICKS),
    _acl("analytics", _READ, RECOMMENDATIONS, resource=_GROUP),
    EVERYTHING,
    NEVER_DENIES,
)
