"""The times at which topics were created, from the metadata log of a running quorum.

Its one rule: brokers do not report these times. They are found in the metadata log, which only controllers serve, and only
to principals with CLUSTER_ACTION. Topics that are merged into a snapshot already have no known time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.operations.errors import OperationError
from barnabas.wire.errors import KafkaError, MalformedError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_TIMEOUT_S = 10.0


async def creation_times(cluster: Cluster, names: Collection[str]) -> dict[str, int]:
    """Return the creation times in milliseconds of those of the topics for which it is known."""
    found: dict[str, int] = {}
    expected = (OSError, KafkaError, MalformedError, UnsupportedVersionError, OperationError)
    with contextlib.suppress(*expected):
        async with asyncio.timeout(_TIMEOUT_S):
            await _read(cluster, names, found)
    return found


async def _read(cluster: Cluster, names: Collection[str], found: dict[str, int]) -> None:
    from barnabas.client.metadata_log import LogSnapshot, read_metadata_log
    from barnabas.operations.quorum.controller_client import controllers_of
    from barnabas.wire import decode_record
    from barnabas.wire.records.metadata import TopicRecord

    async with controllers_of(cluster) as controllers:
        async for part in read_metadata_log(controllers):
            if isinstance(part, LogSnapshot) or part.is_control:
                continue
            for record in part.records:
                message = decode_record(record.value or b"").record
                if isinstance(message, TopicRecord) and message.name in names:
                    found[message.name] = part.header.max_timestamp
