"""The difference between two moments of a running cluster, in words."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.metadata.as_of import AsOf
from barnabas.metadata.changed_fields import is_routine
from barnabas.metadata.changes import changes
from barnabas.metadata.image import MetadataImage
from barnabas.operations.metadata_following import without_secrets
from barnabas.operations.metadata_image import read_image
from barnabas.operations.quorum.controller_client import controllers_of


class Difference(NamedTuple):
    """The offsets that the two moments mean, and what changed between them; routine changes follow every restart."""

    first_offset: int
    last_offset: int
    sentences: list[str]
    routine: int


async def difference_between(cluster: Cluster, begin: AsOf, end: AsOf) -> Difference:
    """Read the metadata log up to both moments. Raises OperationError if it does not reach back so far."""
    async with controllers_of(cluster) as controllers:
        before, after = await read_image(controllers, begin), await read_image(controllers, end)
    # In a thread: with many partitions it takes long, and the caller's connections go on.
    return await asyncio.to_thread(_difference, before, after)


def _difference(before: MetadataImage, after: MetadataImage) -> Difference:
    found = changes(before, after)
    return Difference(
        before.provenance.last_contained_offset,
        after.provenance.last_contained_offset,
        [str(without_secrets(each)) for each in found if not is_routine(each)],
        sum(is_routine(each) for each in found),
    )
