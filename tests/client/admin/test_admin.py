"""`Admin` as a whole: its parts, and what they may not do to each other."""

from __future__ import annotations

import asyncio
from collections import Counter

from barnabas.client.admin.admin import PARTS, Admin
from barnabas.client.cluster import Cluster
from barnabas.testing import Broker


def test_it_is_made_of_all_parts() -> None:
    assert Admin.__bases__ == PARTS


def test_no_name_of_a_part_hides_that_of_another() -> None:
    names = Counter(name for part in PARTS for name in vars(part) if not name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_cluster_that_was_given_stays_open() -> None:
    async def main() -> None:
        async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            async with Admin(cluster) as admin:
                assert (await admin.describe_cluster()).cluster_id == broker.cluster_id
            assert (await Admin(cluster).describe_cluster()).cluster_id == broker.cluster_id

    asyncio.run(main())
