"""Requests of a transactional producer to its coordinator: get an id, add partitions and offsets, end the transaction.

Its one rule: a request without a response leaves the state unchanged, so that it can be sent again; the coordinator
knows what it has done. Records are sent elsewhere. APIs: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
TxnOffsetCommit, EndTxn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.coordinated import coordinator_versions
from barnabas.client.errors import error_code
from barnabas.client.producing.identity import FATAL, NOBODY, Identity, State
from barnabas.client.producing.offsets import add_partitions, codes_of_added, offsets_in_transaction
from barnabas.client.producing.settings import ProducerSettings
from barnabas.client.records import GroupMetadata, OffsetsLike
from barnabas.client.routing import CoordinatorType, coordinator
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

_FIRST_WITH_EPOCH_BUMP = 5  # version of EndTxn; also the first of TxnOffsetCommit that adds the group itself
_CLIENTS_LAST_ADD = 3  # later versions of AddPartitionsToTxn are for brokers
_FEATURE = "transaction.version"


class Transactions:
    """Requests for one transactional id."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, identity: Identity, random: Callable[[], float]
    ) -> None:
        assert identity.transactional_id is not None
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._random = random
        self._id = identity.transactional_id

    async def init(self) -> None:
        """Get a producer id and a new epoch, and find out which version of transactions the cluster has."""
        self._identity.check_usable()
        versions = await self._versions()
        level = versions.finalized_features.get(_FEATURE)
        self._identity.is_v2 = (
            level is not None and level.last >= 2 and versions.serves("EndTxn", _FIRST_WITH_EPOCH_BUMP)
        )
        await self._ask_producer_id(NOBODY)
        self._identity.go(State.READY)

    async def finish(self, *, committed: bool) -> None:
        """End the transaction at the coordinator, unless it has nothing in it."""
        identity = self._identity
        if identity.is_started:
            request = EndTxnRequest(transactional_id=self._id, committed=committed)
            request.producer_id, request.producer_epoch = identity.producer
            answer = await self._ask(request, most=self._most())
            if identity.is_v2 and answer.producer_id >= 0:
                identity.known(answer.producer_id, answer.producer_epoch)
        if identity.needs_bump:
            await self._ask_producer_id(identity.producer)
        identity.go(State.READY)

    async def send_offsets(self, offsets: OffsetsLike, member: GroupMetadata) -> None:
        identity = self._identity
        add, commit = offsets_in_transaction(self._id, identity.producer, offsets, member)
        if not identity.is_v2:
            await self._ask(add)
        identity.is_started = True
        try:
            await self._commit_offsets(commit, member.group_id)
        except KafkaError as error:
            identity.fail(error, is_fatal=error.code in FATAL)
            raise

    async def add_partitions(self) -> Exception | None:
        """Add new partitions to the transaction before records are sent there.

        Returns an error that cannot be retried, or None.
        """
        identity = self._identity
        wanted = set(identity.new_partitions)
        try:
            response = await self._ask(add_partitions(self._id, identity.producer, wanted), most=_CLIENTS_LAST_ADD)
        except (KafkaError, OSError) as error:
            return error
        codes = codes_of_added(response)
        done = {place for place in wanted if codes.get(place) is ErrorCode.NONE}
        if done:
            identity.added(done)
        refused = {place: codes[place] for place in wanted - done if place in codes}
        for place, code in refused.items():
            if not code.retriable and code is not ErrorCode.OPERATION_NOT_ATTEMPTED:
                return KafkaError(code, f"{place}: {code.message}")
        if refused:  # the last transaction is still being completed
            await asyncio.sleep(self._cluster.settings.retry_backoff.first_ms / 1000 / 5)
        return None

    # --- sending

    def _most(self) -> int:
        return _FIRST_WITH_EPOCH_BUMP if self._identity.is_v2 else _FIRST_WITH_EPOCH_BUMP - 1

    async def _versions(self) -> Any:
        timeout_ms = self._settings.max_block_ms
        return await coordinator_versions(self._cluster, self._id, CoordinatorType.TRANSACTION, timeout_ms=timeout_ms)

    async def _ask_producer_id(self, producer: tuple[int, int]) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        if producer != NOBODY:
            request.producer_id, request.producer_epoch = producer
        answer = await self._ask(request)
        self._identity.known(answer.producer_id, answer.producer_epoch)

    async def _ask(self, request: Any, most: int | None = None) -> Any:
        """Send a request, at most in version `most`, and retry until `max.block.ms`."""
        version: int | None = None
        if most is not None:
            name = type(request).__name__.removesuffix("Request")
            version = min((await self._versions()).best(name) or 0, most)
        to = coordinator(self._id, CoordinatorType.TRANSACTION)
        try:
            return await self._cluster.call(request, to, version=version, timeout_ms=self._settings.max_block_ms)
        except KafkaError as error:
            self._identity.fail(error, is_fatal=error.code in FATAL)
            raise

    async def _commit_offsets(self, request: Any, group_id: str) -> None:
        timeout_ms = self._settings.max_block_ms
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        for attempt in range(1 << 30):
            versions = await coordinator_versions(self._cluster, group_id, timeout_ms=timeout_ms)
            version = min(versions.best("TxnOffsetCommit") or 0, self._most())
            response = await self._cluster.call(request, coordinator(group_id), version=version, timeout_ms=timeout_ms)
            codes = [error_code(row.error_code) for topic in response.topics for row in topic.partitions]
            error = next((code for code in codes if code is not ErrorCode.NONE), None)
            if error is None:
                return
            if not error.retriable or asyncio.get_running_loop().time() > deadline_s:
                raise KafkaError(error, f"group {group_id}: {error.message}")
            await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)
