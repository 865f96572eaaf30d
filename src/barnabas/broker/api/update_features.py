"""UpdateFeatures (57), versions 0 to 2.

Raises or lowers feature levels, all of a request or none: the response has the error of the first bad one. Version 0
has a flag that allows downgrades; it is ignored as in Apache Kafka, so a downgrade needs version 1. If a feature is
given twice, the last one counts. `timeout_ms` is ignored. The kraft.version is raised by the voters, before the other
features. Needs ALTER on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import features
from barnabas.controller.features import Update
from barnabas.metadata.versions import KRAFT_VERSION
from barnabas.security.acl import AclOperation
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

WAIT_MS = 60_000


async def handle(context: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    context.require_on_cluster(AclOperation.ALTER)
    updates: dict[str, Update] = {}
    others_first = Breather()
    for each in request.feature_updates:
        updates[each.feature] = Update(each.max_version_level, each.upgrade_type)
        await others_first()
    try:
        if KRAFT_VERSION in updates and not request.validate_only:
            await context.controller.write(features.update, updates, True, timeout_ms=WAIT_MS)
            context.controller.raise_kraft_version(updates[KRAFT_VERSION].level)
        await context.controller.write(features.update, updates, request.validate_only, timeout_ms=WAIT_MS)
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_UPDATE_VERSION:
            raise
        message = f"The update failed for all features since the following feature had an error: {error.message}"
        return UpdateFeaturesResponse(error_code=error.code, error_message=message)
    response = UpdateFeaturesResponse(error_message=None)
    if context.version <= 1:
        result = UpdateFeaturesResponse.UpdatableFeatureResult
        response.results = [result(feature=each.feature, error_message="NONE") for each in request.feature_updates]
    return response
