"""The question for the metadata of a cluster, of which each answer continues the last one."""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.console.links import Link
from barnabas.console.live import Question
from barnabas.operations.metadata_following import Followed, MetadataFollower


def followed(link: Link) -> Question[Followed]:
    """Return the question; the follower of this principal reads only what is new."""

    async def ask(cluster: Cluster) -> Followed:
        if link.follower is None:
            link.follower = MetadataFollower()
        return await link.follower.update(cluster)

    return Question("metadata", ask, 3)
