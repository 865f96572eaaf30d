"""The metadata of a cluster: as it grows, where each answer continues the last one, and as it was at a moment."""

from __future__ import annotations

import time

from barnabas.client.cluster import Cluster
from barnabas.console.links import Link, Past
from barnabas.console.live import Question
from barnabas.metadata.as_of import AsOf
from barnabas.metadata.image import MetadataImage
from barnabas.operations.metadata_following import Followed, MetadataFollower
from barnabas.operations.metadata_image import read_image
from barnabas.operations.quorum.controller_client import controllers_of

_MAX_PAST_S = 60.0
"""A moment that is kept longer might lie in the future when it was read."""


def followed(link: Link) -> Question[Followed]:
    """Return the question; the follower of this principal reads only what is new."""

    async def ask(cluster: Cluster) -> Followed:
        if link.follower is None:
            link.follower = MetadataFollower()
        return await link.follower.update(cluster)

    return Question("metadata", ask, 3)


async def image_as_of(link: Link, moment: AsOf) -> MetadataImage:
    """Return the metadata at a moment. The last one is kept, so that one can walk through it. Raises OperationError."""

    async def ask(cluster: Cluster) -> MetadataImage:
        async with controllers_of(cluster) as controllers:
            return await read_image(controllers, moment)

    past, now_s = link.past, time.monotonic()
    if past is None or past.moment != moment or now_s - past.read_s > _MAX_PAST_S:
        past = link.past = Past(moment, await link.ask(ask), now_s)
    return past.image
