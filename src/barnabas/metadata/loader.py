"""From the batches of the metadata log to the images that may be seen.

The one rule: what stands between the begin and the end of a transaction is seen whole, at its end, or not at all. Only
committed batches come in here; what to do with a new image is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, Draft, MetadataImage, Provenance, Touched
from barnabas.metadata.replay import apply
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    UserScramCredentialRecord,
)

_TRANSACTION_RECORDS: Final = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class MetadataBatch(NamedTuple):
    """A batch of the log. A control batch has no records here, but offsets."""

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp_ms: int
    records: Sequence[Message]


class Published(NamedTuple):
    """A new image, the one before, and what may differ; after a snapshot that is not known (None)."""

    before: MetadataImage
    image: MetadataImage
    touched: Touched | None


class MetadataLoader:
    """Holds the last published image, and the draft of what has been read beyond it."""

    __slots__ = ("_draft", "_is_supported_config", "_pending", "_position", "image", "transaction_start_offset")

    def __init__(
        self, image: MetadataImage = EMPTY_IMAGE, *, is_supported_config: Callable[[int, str], bool] | None = None
    ) -> None:
        self._is_supported_config = is_supported_config
        self._reset(image)

    def _reset(self, image: MetadataImage) -> None:
        self.image = image
        self.transaction_start_offset: int | None = None
        """Where the open transaction began; None outside of one."""
        self._draft = Draft(image, is_supported_config=self._is_supported_config)
        self._position = image.provenance
        self._pending = False

    def load(self, batches: Iterable[MetadataBatch]) -> list[Published]:
        """Applies committed batches, in order. One image for all of them, and one more before each transaction that
        begins after something else; none while a transaction is open."""
        published: list[Published] = []
        for batch in batches:
            self._load_batch(batch, published)
        if self.transaction_start_offset is None and self._pending:
            published.append(self._publish())
        return published

    def load_snapshot(self, records: Iterable[Message], provenance: Provenance) -> Published:
        """Replaces everything by what a snapshot holds."""
        before = self.image
        draft = Draft(EMPTY_IMAGE, is_supported_config=self._is_supported_config)
        for index, record in enumerate(records):
            try:
                apply(draft, record)
            except Exception as error:
                where = f"record {index} of the snapshot at offset {provenance.last_contained_offset}"
                raise ReplayError(f"{where}: {_show(record)}: {error}") from error
        self._reset(draft.finish(provenance))
        return Published(before, self.image, None)

    def _load_batch(self, batch: MetadataBatch, published: list[Published]) -> None:
        if batch.base_offset <= self._position.last_contained_offset:
            raise ReplayError(
                f"a batch at offset {batch.base_offset} comes after offset {self._position.last_contained_offset}"
            )
        for index, record in enumerate(batch.records):
            try:
                if type(record) in _TRANSACTION_RECORDS:
                    self._load_transaction_record(record, batch, index, published)
                else:
                    apply(self._draft, record)
            except Exception as error:
                raise ReplayError(f"offset {batch.base_offset + index}: {_show(record)}: {error}") from error
        self._position = Provenance(batch.last_offset, batch.epoch, batch.append_timestamp_ms)
        self._pending = True

    def _load_transaction_record(
        self, record: Message, batch: MetadataBatch, index: int, published: list[Published]
    ) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self.transaction_start_offset is not None:
                raise ReplayError(f"the transaction that began at offset {self.transaction_start_offset} is still open")
            offset = batch.base_offset + index
            if index:
                self._position = Provenance(offset - 1, batch.epoch, batch.append_timestamp_ms, batch_aligned=False)
            if index or self._pending:
                published.append(self._publish())
            self.transaction_start_offset = offset
        elif self.transaction_start_offset is None:
            raise ReplayError("no transaction is open")
        else:
            self.transaction_start_offset = None
            if isinstance(record, AbortTransactionRecord):
                self._draft = Draft(self.image, is_supported_config=self._is_supported_config)

    def _publish(self) -> Published:
        before, touched = self.image, self._draft.touched()
        self._reset(self._draft.finish(self._position))
        return Published(before, self.image, touched)


def _show(record: Message) -> str:
    """The record in an error message, but no secrets."""
    if isinstance(record, UserScramCredentialRecord):
        return f"UserScramCredentialRecord of {record.name!r}"
    return repr(record)
