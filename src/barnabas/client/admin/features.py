"""Feature levels: supported and finalized ones (ApiVersions, 18), and updates (UpdateFeatures, 57)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from barnabas import __version__
from barnabas.client.admin.part import Part, change, failed
from barnabas.client.errors import error_code
from barnabas.client.routing import any_broker, controller, node
from barnabas.client.versions import versions_of
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.wire.schema import Versions


class UpgradeType(IntEnum):
    """Direction of an update, by its number in UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The new level of a feature; 0 turns it off."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    """Versions supported by a node, and finalized levels of the cluster. `finalized_features_epoch` is None if unknown."""

    supported_features: Mapping[str, Versions]
    finalized_features: Mapping[str, int]
    finalized_features_epoch: int | None

    def level(self, feature: str) -> int:
        """Return the finalized level of a feature, or 0."""
        return self.finalized_features.get(feature, 0)


class Features(Part):
    """Features of the cluster.

    >>> import asyncio
    >>> from barnabas.client import Cluster
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         down = {"group.version": FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)}
    ...         print(await Features(cluster).update_features(down))
    ...         print((await Features(cluster).describe_features()).level("group.version"))
    >>> asyncio.run(main())
    {'group.version': None}
    0
    """

    async def describe_features(
        self, *, node_id: int | None = None, timeout_ms: float | None = None
    ) -> FeatureMetadata:
        """Return the features of any node, or of this one. Supported versions may differ between nodes during an upgrade."""
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
        to = any_broker() if node_id is None else node(node_id)
        response: ApiVersionsResponse = await self.cluster.call(
            request, to, least_version=3, feature="describing features", timeout_ms=timeout_ms
        )
        if response.error_code:
            raise KafkaError(error_code(response.error_code))
        found = versions_of(response)
        epoch = found.finalized_features_epoch
        return FeatureMetadata(
            supported_features=found.supported_features,
            finalized_features={name: levels.last for name, levels in found.finalized_features.items()},
            finalized_features_epoch=None if epoch < 0 else epoch,
        )

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, KafkaError | None]:
        """Raise or lower levels. The result of a feature is None if that succeeded, or could succeed (`validate_only`).

        Newer brokers make all updates or none: then every feature has the error of the first one refused.
        """
        rows = [
            UpdateFeaturesRequest.FeatureUpdateKey(
                feature=name, max_version_level=update.max_version_level, upgrade_type=update.upgrade_type
            )
            for name, update in updates.items()
        ]
        request = UpdateFeaturesRequest(
            timeout_ms=int(timeout_ms or self.cluster.settings.get_int("request.timeout.ms")),
            feature_updates=rows,
            validate_only=validate_only,
        )

        async def ask() -> dict[str, KafkaError | None]:
            try:
                response: UpdateFeaturesResponse = await self.cluster.call(
                    request, controller(), feature="this feature update", timeout_ms=timeout_ms
                )
            except KafkaError as error:
                return dict.fromkeys(updates, error)
            errors = {row.feature: failed(row.error_code, row.error_message) for row in response.results}
            return {name: errors.get(name) for name in updates}

        async def look(names: list[str]) -> dict[str, bool]:
            found = await self.describe_features(timeout_ms=timeout_ms)
            return {name: found.level(name) == updates[name].max_version_level for name in names}

        return await change(list(updates), ask, look, lambda name: f"changing feature {name}")
