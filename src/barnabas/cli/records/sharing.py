"""`barnabas records consume --share-group`: a member of a share group that prints what it gets.

Its one rule: a record is accepted when it was printed and flushed. What was acquired and not printed is released.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records.reading import Show, Stop
from barnabas.cli.records.writing import split_settings
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.cli.terminal.watch import cancelled_by_sigterm, interrupted, terminated
from barnabas.operations.partitions import Selection, find_partitions

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.share_consumer import ShareConsumer

_POLL_MS = 500
_JOIN_S = 20.0
"""Time to wait for partitions. The coordinator initializes those of a new group, and tells them in a later heartbeat."""
_QUIET_S = 5.0
"""Without --follow, reading ends when no record has come for this time: nobody knows the end of a share group."""


def consume_shared(connection: Connection, topics: tuple[Selection, ...], group: str, stop: Stop, show: Show) -> None:
    """Consume as a member of a share group, and show the records."""
    from barnabas.client.share_consumer import ShareConsumer
    from barnabas.client.share_consuming.settings import definitions

    rest, settings = split_settings(connection, definitions())
    settings |= {"group.id": group, "share.acknowledgement.mode": "implicit"}

    async def work(cluster: Cluster) -> None:
        await find_partitions(cluster, topics)  # a missing topic is an error
        is_interrupted = False
        async with ShareConsumer(cluster, settings, topics=dict.fromkeys(each.topic for each in topics)) as consumer:
            with show, cancelled_by_sigterm() as is_terminated:
                try:
                    await _read(consumer, stop, show)
                except asyncio.CancelledError:  # Ctrl-C or SIGTERM: what was printed is accepted
                    is_interrupted = True
            errors = [(place, each) for place, each in (await consumer.commit()).items() if each is not None]
        if is_terminated():
            terminated()
        if is_interrupted:
            interrupted(is_normal=stop.follow)
        for place, error in errors:
            text = f"printed records were not accepted, and are delivered again: {error}"
            raise Failure(text, resource=f"partition {place}")

    run(rest, work, is_long=True)


async def _read(consumer: ShareConsumer, stop: Stop, show: Show) -> None:
    loop = asyncio.get_running_loop()
    shown, began_at_s = 0, loop.time()
    heard_at_s = began_at_s
    while True:
        if not consumer.assignment() and not stop.follow and loop.time() - began_at_s > _JOIN_S:
            note("the group has assigned no partitions to this consumer")
            return
        left = None if stop.max_records is None else stop.max_records - shown
        if left == 0:
            return
        found = await consumer.poll(_POLL_MS, max_records=left)
        for record in found:
            show.add(record)
        if found:
            show.flush()
            shown, heard_at_s = shown + len(found), loop.time()
            await asyncio.sleep(0)
        elif not consumer.assignment():
            heard_at_s = loop.time()
        elif not stop.follow and loop.time() - heard_at_s > _QUIET_S:
            return
