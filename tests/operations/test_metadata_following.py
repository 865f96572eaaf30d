"""Following the metadata log: each record once, in words, without secrets."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import Admin, Cluster
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.operations.configs.history import config_history
from barnabas.operations.metadata_difference import difference_between
from barnabas.operations.metadata_following import MetadataFollower
from barnabas.testing import AsyncBroker


def test_a_follower_reads_what_is_new_and_hides_secrets() -> None:
    async def main() -> None:
        async with AsyncBroker(topics={"orders": 1}) as broker:
            settings = {"bootstrap.servers": broker.bootstrap_servers}
            async with Cluster(settings) as cluster, Admin(settings) as admin:
                follower = MetadataFollower()
                first = await follower.update(cluster)
                assert first.image.topics.get("orders") is not None
                op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1234567")
                await admin.incremental_alter_configs({ConfigResource.topic("orders"): [op]})
                await admin.alter_user_scram_credentials(
                    [ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_512, "secret", salt=b"a salt to find")]
                )
                second = await follower.update(cluster)
                assert second.end_offset > first.end_offset
                new = [each for each in second.records if each.offset >= first.end_offset]
                assert {"ConfigRecord", "UserScramCredentialRecord"} <= {each.type for each in new}
                assert len({each.offset for each in second.records}) == len(second.records)
                assert "YSBzYWx0" not in "".join(each.text for each in second.records), "the salt, in Base64"
                sentences = " ".join(each.sentence for each in second.changes)
                assert "1234567" in sentences
                assert "alice" in sentences
                found = await difference_between(cluster, AsOf(offset=first.end_offset - 1), EVERYTHING)
                assert any("retention.ms" in each for each in found.sentences)

    asyncio.run(main())


def test_changes_before_the_last_snapshot_are_known_while_the_log_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        config = {"metadata.log.max.record.bytes.between.snapshots": "500"}
        async with AsyncBroker(topics={"orders": 1}, config=config) as broker:
            settings = {"bootstrap.servers": broker.bootstrap_servers}
            async with Cluster(settings) as cluster, Admin(settings) as admin:
                orders = ConfigResource.topic("orders")
                for number in range(40):
                    op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, str(1000 + number))
                    await admin.incremental_alter_configs({orders: [op]})
                found = await MetadataFollower().update(cluster)
                assert any("1000" in each.sentence for each in found.changes)
                events = await config_history(cluster, orders, 100)
                assert [each.after for each in events][::-1] == [str(1000 + number) for number in range(40)]
                difference = await difference_between(cluster, AsOf(offset=events[-1].offset), EVERYTHING)
                assert any("1039" in each for each in difference.sentences)
                monkeypatch.setattr("barnabas.operations.metadata_image.MAX_WHOLE_LOG", 0)
                late = await MetadataFollower().update(cluster)
                assert late.image.configs == found.image.configs
                assert len(late.changes) < len(found.changes), "a long log is read from its last snapshot on"

    asyncio.run(main())
