"""A cluster with something on each page: records, transactions, groups, ACLs, quotas, and settings that changed."""

from __future__ import annotations

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.quotas import quota_entity
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import Broker

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"{{77777*7}}"
"""A text that would run, or break out of an attribute, if a page did not escape it."""


def allow(principal: str, topic: str, operation: AclOperation = AclOperation.READ) -> AclEntry:
    return AclEntry(ResourceType.TOPIC, topic, PatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)


def fill(broker: Broker, *, with_hostile: bool = True) -> None:
    """Fill a broker that has the topics orders (3 partitions) and payments."""
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer(settings) as producer:
        for number in range(60):
            value = f'{{"id": {number}, "total": {number * 3}}}'.encode()
            producer.send("orders", value, b"key-%d" % (number % 7), headers=[("trace", b"t%d" % number)])
        if with_hostile:
            producer.send("orders", HOSTILE.encode(), HOSTILE.encode(), headers=[(HOSTILE, HOSTILE.encode())])
        producer.flush()
    with Producer({**settings, "transactional.id": "payments-writer"}) as producer:
        producer.init_transactions()
        for is_good in (True, False):
            producer.begin_transaction()
            producer.send("payments", b"\x00\xff binary", b"committed" if is_good else b"aborted")
            producer.flush()
            if is_good:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    with Admin(settings) as admin:
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 3, TopicPartition("orders", 1): 0})
        admin.create_acls([allow("User:alice", "orders")])
        if with_hostile:
            admin.alter_consumer_group_offsets(HOSTILE, {TopicPartition("orders", 0): 1})
            admin.create_acls([allow(f"User:{HOSTILE}", "orders")])
            admin.alter_client_quotas({quota_entity(user=HOSTILE): {"producer_byte_rate": 1024.0}})
        for text in ("86400000", "3600000"):
            op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, text)
            admin.incremental_alter_configs({ConfigResource.topic("payments"): [op]})
