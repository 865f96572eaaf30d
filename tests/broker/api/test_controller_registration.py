"""ControllerRegistration (70)."""

from __future__ import annotations

from barnabas.metadata.brokers import Endpoint, VersionRange
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import Uuid
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from tests.broker.harness import MemoryNode


def request(**fields: object) -> ControllerRegistrationRequest:
    of = ControllerRegistrationRequest
    made = of(
        controller_id=3,
        incarnation_id=Uuid(b"c" * 16),
        listeners=[of.Listener(name="CONTROLLER", host="h", port=9093, security_protocol=2)],
        features=[of.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_controller_is_registered_with_its_listeners_and_features() -> None:
    node = MemoryNode()
    response = node.call(request(), 0, listener="controller")
    assert (response.error_code, response.error_message) == (0, "")
    controller = node.image.controllers[3]
    assert dict(controller.listeners) == {"CONTROLLER": Endpoint("CONTROLLER", "h", 9093, 2)}
    assert dict(controller.features) == {"metadata.version": VersionRange(7, 30)}
    assert not controller.zk_migration_ready


def test_before_3_7_there_is_no_record_for_it() -> None:
    response = MemoryNode(features={"metadata.version": 14}).call(request(), 0, listener="controller")
    assert (response.error_code, response.error_message) == (35, "The version of API is not supported.")


def test_a_listener_needs_a_known_protocol() -> None:
    node = MemoryNode()
    listener = ControllerRegistrationRequest.Listener(name="CONTROLLER", host="h", port=1, security_protocol=4)
    assert node.call(request(listeners=[listener]), 0, listener="controller").error_code == 119
    assert node.written == []


def test_it_needs_cluster_action() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    response = node.call(request(), 0, listener="controller")
    assert (response.error_code, response.error_message) == (31, "Cluster authorization failed.")
