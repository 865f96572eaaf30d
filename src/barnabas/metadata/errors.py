"""Errors of metadata: records that do not fit the image, and images that a metadata.version cannot represent.

A `ReplayError` stops the node, because a wrong image is worse than none.
"""

from __future__ import annotations


class ReplayError(Exception):
    """A record that cannot be applied. The loader adds the record and its offset to the message."""


class UnwritableMetadataError(Exception):
    """A part of an image that records of the requested metadata.version cannot represent."""

    def __init__(self, metadata_version: object, loss: str) -> None:
        super().__init__(f"metadata.version {metadata_version} cannot represent {loss}")
        self.loss = loss
