"""Converts an image to records and back: the content of a metadata snapshot between its header and footer.

The one rule: records -> image -> records -> image is the identity for every metadata.version that can represent the
image. This module does not know files, headers or batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.metadata import acls, brokers, configs, features, producer_ids, quotas, scram, tokens, topics
from barnabas.metadata.errors import UnwritableMetadataError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire.message import Message


def to_records(
    image: MetadataImage,
    metadata_version: MetadataVersion | None = None,
    on_loss: Callable[[str], None] | None = None,
) -> Iterator[tuple[Message, int]]:
    """Yield the records of this image, each with the version to write it in, in Kafka's order.

    The default version is that of the image. What the version cannot represent is passed to `on_loss` and left out;
    without `on_loss`, UnwritableMetadataError is raised.
    """
    version = image.metadata_version if metadata_version is None else metadata_version
    if version is None:
        raise UnwritableMetadataError(None, "an image without a metadata.version")

    def lose(what: str) -> None:
        if on_loss is None:
            raise UnwritableMetadataError(version, what)
        on_loss(what)

    yield from features.to_records(image.features, version)
    yield from brokers.brokers_to_records(image.brokers, version, lose)
    yield from brokers.controllers_to_records(image.controllers, version, lose)
    yield from topics.to_records(image.topics, version, lose)
    yield from configs.to_records(image.configs)
    yield from quotas.to_records(image.quotas)
    yield from producer_ids.to_records(image.producer_ids)
    yield from acls.to_records(image.acls)
    yield from scram.to_records(image.scram, version, lose)
    yield from tokens.to_records(image.tokens, version, lose)


def from_records(records: Iterable[Message], provenance: Provenance) -> MetadataImage:
    """Return the image that a snapshot's records describe."""
    return replay(EMPTY_IMAGE, records, provenance)
