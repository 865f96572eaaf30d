"""The audit log of a node whose clients send secrets has none of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from barnabas.client import Admin, AlterConfigOp, AlterConfigOpType, ConfigResource, NewTopic, Producer
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.testing import AsyncBroker, Security

ALICES, NEW, DYNAMIC, VALUE = (f"planted-{name}-secret" for name in ("alice", "new", "dynamic", "value"))
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def test_the_audit_log_has_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    security = Security("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-512"), {"alice": ALICES})

    async def run() -> None:
        settings = {"barnabas.audit.log.path": str(path), "barnabas.audit.log.data": "true"}
        async with AsyncBroker(["t"], security=security, config=settings) as broker:
            config = broker.client_config("alice")
            async with Admin(config) as admin:
                await admin.alter_user_scram_credentials([ScramUpsertion("bob", ScramMechanism.SCRAM_SHA_256, NEW)])
                module = "org.apache.kafka.common.security.plain.PlainLoginModule"
                jaas = f'{module} required user_alice="{ALICES}" user_x="{DYNAMIC}";'
                for operation in (AlterConfigOpType.SET, AlterConfigOpType.APPEND):
                    op = AlterConfigOp(JAAS, operation, jaas)
                    await admin.incremental_alter_configs({ConfigResource.broker(1): [op]})
                await admin.create_topics([NewTopic("made", configs={"retention.ms": VALUE})])
            async with Producer(broker.client_config("alice")) as producer:
                await producer.send("t", key=VALUE.encode(), value=VALUE.encode())

    asyncio.run(run())
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"AlterUserScramCredentials", "IncrementalAlterConfigs", "CreateTopics", "Produce"} <= {
        line["api"] for line in lines
    }
    assert {"type": "USER", "name": "bob"} in [each for line in lines for each in line.get("resources", ())]
    assert JAAS in text  # the name of the setting
    for secret in (ALICES, NEW, DYNAMIC, VALUE, "planted"):
        assert secret not in text
