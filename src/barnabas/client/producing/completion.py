"""The outcome of each batch: written, sent again, split, or failed.

Its one rule: a batch is sent again only as long as its place in the order of the partition is kept. Where that cannot
be, an idempotent producer takes a new epoch, with which sequence numbers start at 0; a transactional one fails its
transaction. No I/O: times are passed in, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.client.backoff import Backoff
from barnabas.client.errors import CallTimeoutError, error_code
from barnabas.client.producing.accumulator import Accumulator
from barnabas.client.producing.batch import Batch, PartitionQueue
from barnabas.client.producing.identity import FATAL_TO_BATCHES, NOBODY, Identity, State
from barnabas.client.producing.settings import ProducerSettings
from barnabas.client.retry import maybe_done
from barnabas.config.values import ConfigError
from barnabas.wire import ErrorCode, KafkaError, UnsupportedVersionError
from barnabas.wire.messages.produce import ProduceResponse

_MAYBE_WRITTEN = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class Completion:
    """Completes the batches of a producer, or returns them to the accumulator."""

    def __init__(
        self,
        settings: ProducerSettings,
        identity: Identity,
        accumulator: Accumulator,
        backoff: Backoff,
        random: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._accumulator = accumulator
        self._backoff = backoff
        self._random = random
        self._without_id: set[PartitionQueue] = (
            set()
        )  # epochs were used up: sequence numbers restart with the next producer id

    # --- answers

    def answered(
        self,
        queue: PartitionQueue,
        batch: Batch,
        row: ProduceResponse.PartitionProduceResponse | None,
        now_s: float,
    ) -> ErrorCode | None:
        """Handle the response for a batch, None if the response lacks it. Returns the error in it, if any."""
        queue.on_the_wire -= 1
        if row is None:
            self._retry(
                queue, batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response lacks the partition"), now_s
            )
            return None
        code = error_code(row.error_code)
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._written(queue, batch, row.base_offset, row.log_append_time_ms)
            return None
        error = KafkaError(code, f"{queue.partition}: {row.error_message or code.message}")
        if code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._accumulator.split(queue, batch)
        elif self._may_retry(queue, batch, code, row.log_start_offset):
            self._retry(queue, batch, error, now_s, maybe_written=code in _MAYBE_WRITTEN)
        else:
            self._failed(queue, batch, error)
        return code

    def lost(self, queue: PartitionQueue, batch: Batch, error: Exception, now_s: float) -> None:
        """Handle a batch whose request had no response."""
        queue.on_the_wire -= 1
        passes = isinstance(error, OSError) or (
            isinstance(error, KafkaError) and (error.code.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE)
        )
        if passes and not isinstance(error, ConfigError):
            self._retry(queue, batch, error, now_s, maybe_written=maybe_done(error))
        else:
            self._failed(queue, batch, error)

    def sent_without_acks(self, queue: PartitionQueue, batch: Batch) -> None:
        """Handle a batch that was sent with acks=0: it counts as written, at an unknown offset."""
        queue.on_the_wire -= 1
        self._written(queue, batch, -1, -1)

    def _written(self, queue: PartitionQueue, batch: Batch, base_offset: int, log_append_time_ms: int) -> None:
        queue.acked(batch, base_offset)
        batch.succeed(base_offset, log_append_time_ms)
        self._accumulator.release(batch)
        self._resolve(queue)

    # --- retries

    def _may_retry(self, queue: PartitionQueue, batch: Batch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether a batch is sent again. If that needs a new epoch, it is taken here."""
        identity = self._identity
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._settings.enable_idempotence:
            if batch.was_rewritten or not queue.is_first(batch):
                return True  # an earlier batch is not written yet
            if not identity.is_transactional:
                self._begin_anew(queue)
                return True
            return False
        if code is ErrorCode.UNKNOWN_PRODUCER_ID and self._settings.enable_idempotence:
            if log_start_offset == -1 or batch.was_rewritten:
                return True
            if not identity.is_transactional:
                self._begin_anew(queue)
                return True
            if queue.last_acked_offset < log_start_offset:  # retention deleted all its records and its sequence
                queue.begin_anew(identity.producer)
                return True
            return False
        return code.retriable

    def _retry(
        self, queue: PartitionQueue, batch: Batch, error: Exception, now_s: float, *, maybe_written: bool = False
    ) -> None:
        batch.last_error = error
        batch.maybe_written = batch.maybe_written or maybe_written
        if batch.attempts >= self._settings.retries or self._identity.state is State.ABORTING:
            self._failed(queue, batch, error)
            return
        if now_s >= batch.created_s + self._settings.delivery_timeout_ms / 1000:
            self._timed_out(queue, batch)
            return
        batch.not_before_s = now_s + self._backoff.delay_ms(batch.attempts, self._random()) / 1000
        batch.attempts += 1
        self._accumulator.put_back(queue, batch)

    def _begin_anew(self, queue: PartitionQueue) -> None:
        self._identity.bump()
        if self._identity.producer == NOBODY:
            self._without_id.add(queue)
            return
        queue.begin_anew(self._identity.producer)

    def got_producer_id(self) -> None:
        """Restart sequence numbers of partitions for which the last producer id had no epoch left."""
        for queue in self._without_id:
            queue.begin_anew(self._identity.producer)
        self._without_id.clear()

    # --- failures

    def expire(self, queue: PartitionQueue, now_s: float) -> None:
        """Fail the waiting batches that were not written within `delivery.timeout.ms`."""
        limit_s = now_s - self._settings.delivery_timeout_ms / 1000
        while queue.waiting and queue.waiting[0].created_s <= limit_s and queue.waiting[0] is not queue.open:
            self._timed_out(queue, queue.waiting.popleft())
        if queue.waiting and queue.waiting[0] is queue.open and queue.waiting[0].created_s <= limit_s:
            queue.open = None
            self._timed_out(queue, queue.waiting.popleft())

    def _timed_out(self, queue: PartitionQueue, batch: Batch) -> None:
        timeout_ms = self._settings.delivery_timeout_ms
        last = batch.last_error
        why = f"; the last error: {last}" if last is not None else ""
        text = f"{batch.count} records for {queue.partition}: not written within delivery.timeout.ms={timeout_ms}{why}"
        self._failed(queue, batch, CallTimeoutError(text, last, maybe_done=batch.maybe_written))

    def fail_waiting(self, error: Exception) -> None:
        """Fail everything that waits: there is no producer id."""
        for queue in list(self._accumulator.active.values()):
            queue.open = None
            while queue.waiting:
                self._failed(queue, queue.waiting.popleft(), error)

    def _failed(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        """Fail a batch that is not sent again."""
        identity = self._identity
        queue.given_up(batch)
        batch.fail(error)
        self._accumulator.release(batch)
        if identity.is_transactional:
            code = error.code if isinstance(error, KafkaError) else None
            identity.needs_bump = identity.needs_bump or batch.has_sequence
            identity.fail(error, is_fatal=code in FATAL_TO_BATCHES or isinstance(error, UnsupportedVersionError))
        elif self._settings.enable_idempotence and batch.has_sequence:
            if batch.maybe_written:
                queue.is_unresolved = True
            else:
                self._begin_anew(queue)
        self._resolve(queue)

    def _resolve(self, queue: PartitionQueue) -> None:
        """Restart sequence numbers after a batch that may have been written, once no other batch is in flight."""
        if queue.is_unresolved and not queue.in_flight:
            self._begin_anew(queue)
            queue.is_unresolved = False

    def drop(self, queue: PartitionQueue, error: Exception) -> None:
        """Fail everything that waits for a partition, without a new epoch: its transaction is aborted."""
        queue.open = None
        while queue.waiting:
            batch = queue.waiting.popleft()
            self._identity.needs_bump = self._identity.needs_bump or batch.has_sequence
            queue.given_up(batch)
            batch.fail(error)
            self._accumulator.release(batch)
