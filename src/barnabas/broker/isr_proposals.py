"""Sends changes of in-sync replicas that this broker proposes as a leader to the controller (AlterPartition).

Its one rule: one request is under way at a time, and proposals that come meanwhile are sent together with the next. If
the whole request fails, all its proposals are sent again, except those that the metadata has overtaken. The partition
decides what an answer means (`replicas.leading`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.client.errors import error_code
from barnabas.metadata.topics import RECOVERED
from barnabas.replicas.leading import Decided, Proposal
from barnabas.replicas.partition import Partition
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

_log = logging.getLogger(__name__)

RETRY_S = 0.05
Send = Callable[[list[AlterPartitionRequest.TopicData]], Awaitable[AlterPartitionResponse]]
Key = tuple[Uuid, int]


class IsrProposals:
    """The proposals that the controller has not decided yet. `send` sends some, and raises KafkaError and OSError."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[Key, tuple[Partition, Proposal]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self._waiting[partition.topic_id, partition.partition_id] = partition, proposal
        if self._sending is None and not self._is_stopped:
            self._sending = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        self._is_stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _run(self) -> None:
        try:
            while self._waiting:
                sent, self._waiting = self._waiting, {}
                sent = {key: each for key, each in sent.items() if _is_pending(*each)}
                if sent and not await self._send_some(sent):
                    self._waiting = {**sent, **self._waiting}
                    await asyncio.sleep(RETRY_S)
        finally:
            self._sending = None

    async def _send_some(self, sent: dict[Key, tuple[Partition, Proposal]]) -> bool:
        """Send proposals and pass on the answers. Return whether the request was answered."""
        try:
            response = await self._send(_rows(sent))
        except (KafkaError, OSError, TimeoutError) as error:
            _log.info("the controller did not take %d changes of in-sync replicas: %s", len(sent), error)
            return False
        except Exception:
            _log.exception("sending %d changes of in-sync replicas failed", len(sent))
            return False
        is_delayed = False
        for topic in response.topics:
            for row in topic.partitions:
                key = topic.topic_id, row.partition_index
                found = sent.pop(key, None)
                if found is not None and self._answer(*found, row):
                    self._waiting.setdefault(key, found)
                    is_delayed = True
        if is_delayed:
            await asyncio.sleep(RETRY_S)
        return not sent

    def _answer(self, partition: Partition, proposal: Proposal, row: AlterPartitionResponse.PartitionData) -> bool:
        """Pass on the answer to one proposal. Return whether to send it again."""
        code = error_code(row.error_code)
        if code is not ErrorCode.NONE:
            _log.info("%s: the controller refused the ISR %s: %s", partition, proposal.replicas, code.name)
            return partition.altered(proposal, code)
        _log.info("%s: the ISR is now %s", partition, row.isr)
        return partition.altered(
            proposal, Decided(row.leader_id, row.leader_epoch, tuple(row.isr), row.partition_epoch)
        )


def _is_pending(partition: Partition, proposal: Proposal) -> bool:
    return partition.leading is not None and partition.leading.proposed is proposal


def _rows(sent: dict[Key, tuple[Partition, Proposal]]) -> list[AlterPartitionRequest.TopicData]:
    topics: dict[Uuid, AlterPartitionRequest.TopicData] = {}
    for (topic_id, partition_id), (_, proposal) in sent.items():
        topic = topics.setdefault(topic_id, AlterPartitionRequest.TopicData(topic_id=topic_id))
        topic.partitions.append(
            AlterPartitionRequest.PartitionData(
                partition_index=partition_id,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    AlterPartitionRequest.BrokerState(broker_id=replica, broker_epoch=epoch)
                    for replica, epoch in proposal.isr
                ],
                leader_recovery_state=RECOVERED,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return list(topics.values())
