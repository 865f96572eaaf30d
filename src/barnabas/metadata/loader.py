"""Builds the published images from the batches of the metadata log.

The one rule: a transaction becomes visible as a whole at its end, or not at all. Only committed batches are passed in;
the caller decides what to do with a new image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, Draft, MetadataImage, Provenance, Touched
from barnabas.metadata.replay import apply
from barnabas.steps import Slices, at_once, stepwise
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    UserScramCredentialRecord,
)

_TRANSACTION_RECORDS: Final = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class MetadataBatch(NamedTuple):
    """A batch of the log. A control batch has offsets but no records."""

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp_ms: int
    records: Sequence[Message]

    def by_record(self) -> Iterator[MetadataBatch]:
        """Yield a batch for each record, so that each change has the offset of its record. A control batch stays as it is."""
        for index, record in enumerate(self.records):
            offset = self.base_offset + index
            yield self._replace(base_offset=offset, last_offset=offset, records=(record,))
        if not self.records:
            yield self


class Published(NamedTuple):
    """A new image, the previous one, and the keys that may differ; None if unknown, as after a snapshot."""

    before: MetadataImage
    image: MetadataImage
    touched: Touched | None


class MetadataLoader:
    """The last published image, and the draft of what was read after it."""

    __slots__ = ("_draft", "_is_supported_config", "_pending", "_position", "image", "transaction_start_offset")

    def __init__(
        self, image: MetadataImage = EMPTY_IMAGE, *, is_supported_config: Callable[[int, str], bool] | None = None
    ) -> None:
        self._is_supported_config = is_supported_config
        self._reset(image)

    def _reset(self, image: MetadataImage) -> None:
        self.image = image
        self.transaction_start_offset: int | None = None
        """The offset of the open transaction's begin record, or None."""
        self._draft = Draft(image, is_supported_config=self._is_supported_config)
        self._position = image.provenance
        self._pending = False

    def load(self, batches: Iterable[MetadataBatch]) -> list[Published]:
        """Apply committed batches in order, and return the new images.

        There is one image for all batches, and one more before each transaction that starts after other records.
        Nothing is published while a transaction is open.
        """
        return at_once(self.load_in_slices(batches))

    def load_in_slices(self, batches: Iterable[MetadataBatch]) -> Slices[list[Published]]:
        """Do the same as `load`, with pauses. Nothing else may be loaded meanwhile."""
        published: list[Published] = []
        for batch in batches:
            yield from self._load_batch(batch, published)
        if self.transaction_start_offset is None and self._pending:
            published.append((yield from self._publish()))
        return published

    def load_snapshot(self, records: Iterable[Message], provenance: Provenance) -> Published:
        """Replace the image by the content of a snapshot."""
        return at_once(self.load_snapshot_in_slices(records, provenance))

    def load_snapshot_in_slices(self, records: Iterable[Message], provenance: Provenance) -> Slices[Published]:
        """Do the same as `load_snapshot`, with pauses. The image is replaced at the end."""
        before = self.image
        draft = Draft(EMPTY_IMAGE, is_supported_config=self._is_supported_config)
        for index, record in enumerate(records):
            yield
            try:
                apply(draft, record)
            except Exception as error:
                where = f"record {index} of the snapshot at offset {provenance.last_contained_offset}"
                raise ReplayError(f"{where}: {_show(record)}: {error}") from error
        self._reset((yield from draft.finish_in_slices(provenance)))
        return Published(before, self.image, None)

    def _load_batch(self, batch: MetadataBatch, published: list[Published]) -> Slices[None]:
        if batch.base_offset <= self._position.last_contained_offset:
            raise ReplayError(
                f"a batch at offset {batch.base_offset} comes after offset {self._position.last_contained_offset}"
            )
        for some in stepwise(enumerate(batch.records)):
            for index, record in some:
                try:
                    if type(record) in _TRANSACTION_RECORDS:
                        yield from self._load_transaction_record(record, batch, index, published)
                    else:
                        apply(self._draft, record)
                except Exception as error:
                    raise ReplayError(f"offset {batch.base_offset + index}: {_show(record)}: {error}") from error
            yield
        self._position = Provenance(batch.last_offset, batch.epoch, batch.append_timestamp_ms)
        self._pending = True

    def _load_transaction_record(
        self, record: Message, batch: MetadataBatch, index: int, published: list[Published]
    ) -> Slices[None]:
        if isinstance(record, BeginTransactionRecord):
            if self.transaction_start_offset is not None:
                raise ReplayError(f"the transaction that began at offset {self.transaction_start_offset} is still open")
            offset = batch.base_offset + index
            if index:
                self._position = Provenance(offset - 1, batch.epoch, batch.append_timestamp_ms, batch_aligned=False)
            if index or self._pending:
                published.append((yield from self._publish()))
            self.transaction_start_offset = offset
        elif self.transaction_start_offset is None:
            raise ReplayError("no transaction is open")
        else:
            self.transaction_start_offset = None
            if isinstance(record, AbortTransactionRecord):
                self._draft = Draft(self.image, is_supported_config=self._is_supported_config)

    def _publish(self) -> Slices[Published]:
        before, touched = self.image, self._draft.touched()
        self._reset((yield from self._draft.finish_in_slices(self._position)))
        return Published(before, self.image, touched)


def _show(record: Message) -> str:
    """Format the record for an error message, without secrets."""
    if isinstance(record, UserScramCredentialRecord):
        return f"UserScramCredentialRecord of {record.name!r}"
    return repr(record)
