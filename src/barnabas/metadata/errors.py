"""What can be wrong with metadata: records that do not fit the image, and an image that a version cannot hold.

A `ReplayError` stops the node: a wrong image is worse than none.
"""

from __future__ import annotations


class ReplayError(Exception):
    """A record that cannot be applied; once the loader has seen it, the message names the record and its offset."""


class UnwritableMetadataError(Exception):
    """Part of an image that records of the asked metadata.version cannot hold."""

    def __init__(self, metadata_version: object, loss: str) -> None:
        super().__init__(f"metadata.version {metadata_version} cannot hold {loss}")
        self.loss = loss
