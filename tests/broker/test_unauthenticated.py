"""SaslHandshake (17), SaslAuthenticate (36) and delegation tokens (38 to 41), where nobody authenticates."""

from __future__ import annotations

import pytest

from barnabas.wire import Message
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import Capture, params

CAPTURED = ["SaslHandshake", "SaslAuthenticate", "CreateDelegationToken", "DescribeDelegationToken"]


@pytest.mark.parametrize("capture", [capture for api in CAPTURED for capture in params(api)])
def test_a_plaintext_listener_answers_as_that_of_kafka(capture: Capture) -> None:
    assert capture.ask(MemoryNode()) == capture.answer


@pytest.mark.parametrize("listener", ["broker", "controller"])
@pytest.mark.parametrize(
    ("request_", "versions", "code"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), range(2), 34),
        (SaslAuthenticateRequest(auth_bytes=b"x"), range(3), 34),
        (CreateDelegationTokenRequest(max_lifetime_ms=-1), range(1, 4), 64),
        (RenewDelegationTokenRequest(hmac=b"x"), range(1, 3), 64),
        (ExpireDelegationTokenRequest(hmac=b"x"), range(1, 3), 64),
        (DescribeDelegationTokenRequest(owners=None), range(1, 4), 64),
    ],
)
def test_every_version_on_every_listener_says_no(request_: Message, versions: range, code: int, listener: str) -> None:
    for version in versions:
        response = MemoryNode().call(request_, version, listener=listener)
        assert response.error_code == code
        assert getattr(response, "expiry_timestamp_ms", -1) == -1


def test_the_owner_that_was_asked_for_is_told() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=1)
    response = MemoryNode().call(request, 3)
    assert (response.principal_type, response.principal_name) == ("User", "bob")
    assert (response.token_requester_principal_type, response.token_requester_principal_name) == ("User", "ANONYMOUS")
