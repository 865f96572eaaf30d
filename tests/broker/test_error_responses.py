"""Whatever the request: its error response can be made and written, so that a fault in a handler is always answered."""

from __future__ import annotations

import pytest

from barnabas import wire
from barnabas.broker.errors import error_response
from barnabas.broker.served import served_apis, served_versions
from barnabas.wire import APIS, ErrorCode
from tests.wire.golden import vectors_of

KEYS = sorted({*served_apis("broker"), *served_apis("controller")})


@pytest.mark.parametrize("key", [pytest.param(key, id=APIS[key].name) for key in KEYS])
def test_every_request_has_an_error_response_that_carries_the_code(key: int) -> None:
    api = APIS[key]
    for vector in vectors_of(api.request):
        if vector.version not in served_versions(key):
            continue
        request = wire.decode(api.request, vector.version, vector.data)
        response = error_response(api, vector.version, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        data = wire.encode(response, vector.version)
        assert wire.decode(api.response, vector.version, data) == response
