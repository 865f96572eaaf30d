"""ApiVersions (18), versions 0 to 4.

Returns the APIs and versions that this listener serves, the features that the node supports, and the cluster's
finalized feature levels. An unknown version gets error 35 (UNSUPPORTED_VERSION) encoded in version 0, with a single row
for ApiVersions itself. From version 3 on, the client's name and version must be well formed (INVALID_REQUEST).

Version 3 leaves out supported features whose minimum is 0, because its clients read 0 as "not supported". Version 4 has
them. The Produce row begins at version 0, although 0 to 2 are refused: older librdkafka would not use compression
otherwise.
"""

from __future__ import annotations

import re

from barnabas.broker.context import Context, Encoded
from barnabas.broker.served import advertised_keys, served_versions
from barnabas.controller.features import SHOWN_ORDER, SUPPORTED
from barnabas.wire import ApiKey, ErrorCode, encode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

KEY = ApiKey.API_VERSIONS
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: Context, request: ApiVersionsRequest | None) -> ApiVersionsResponse | bytes:
    if request is None:
        return unsupported_version()
    if context.version >= 3:
        name, software_version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(software_version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        information = context.peer.information
        if information is not None:
            information.software_name, information.software_version = name, software_version
    epoch = context.image.offset
    kind, version = context.listener.kind, context.version
    kept = context.services.encoded
    known = kept.get((KEY, kind, version))
    if known is None or known.epoch != epoch:
        known = kept[KEY, kind, version] = Encoded(epoch, encode(_response(context), version))
    return known.body


def unsupported_version() -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_row(KEY)])


def _row(key: int) -> ApiVersionsResponse.ApiVersion:
    versions = served_versions(key)
    first = 0 if key == ApiKey.PRODUCE else versions.first
    return ApiVersionsResponse.ApiVersion(api_key=key, min_version=first, max_version=versions.last)


def _response(context: Context) -> ApiVersionsResponse:
    takes_telemetry = bool(context.config.get_str("barnabas.telemetry.receiver"))
    keys = advertised_keys(context.listener.kind, takes_telemetry=takes_telemetry)
    response = ApiVersionsResponse(api_keys=[_row(key) for key in keys])
    response.supported_features = [
        ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=first, max_version=last)
        for name, (first, last) in ((name, SUPPORTED[name]) for name in SHOWN_ORDER)
        if first > 0 or context.version >= 4
    ]
    features = context.services.finalized_features
    response.finalized_features_epoch = features.epoch
    response.finalized_features = [
        ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in features.levels.items()
    ]
    return response
